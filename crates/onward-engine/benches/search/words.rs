//! Deterministic words and texts, with word frequencies similar to a natural language.

use onward_testbed::Rng;

/// Size of the vocabulary.
const VOCABULARY_SIZE: usize = 30_000;

/// A type of query.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// One word that occurs in few texts.
    Rare,
    /// Two words that occur in some texts.
    TwoWords,
    /// Three words, one of which occurs almost everywhere.
    Mixed,
    /// A sentence, as agents send it.
    Sentence,
    /// One word that occurs in every chunk: the worst case.
    Everywhere,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 5] = [
    Kind::Rare,
    Kind::TwoWords,
    Kind::Mixed,
    Kind::Sentence,
    Kind::Everywhere,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rare => "one rare word",
            Kind::TwoWords => "two words",
            Kind::Mixed => "three words, one very common",
            Kind::Sentence => "sentence of eight words",
            Kind::Everywhere => "one word in every chunk",
        }
    }
}

/// The vocabulary, ordered by frequency.
pub(crate) struct Words {
    /// Cumulative frequency of the words up to each rank.
    cumulative: Vec<f64>,
}

/// A number from 0 to 1.
fn fraction(rng: &mut Rng) -> f64 {
    let bits = u32::try_from(rng.next_u64() >> 32).unwrap_or(0);
    f64::from(bits) / f64::from(u32::MAX)
}

impl Words {
    pub(crate) fn new() -> Self {
        let mut sum = 0.0;
        let cumulative = (0..VOCABULARY_SIZE).map(|rank| {
            let rank = u32::try_from(rank).unwrap_or(u32::MAX);
            sum += 1.0 / (f64::from(rank) + 2.7);
            sum
        });
        let mut cumulative: Vec<f64> = cumulative.collect();
        cumulative.iter_mut().for_each(|value| *value /= sum);
        Self { cumulative }
    }

    /// An artificial word; frequent words are shorter.
    fn spell(mut rank: usize) -> String {
        const SYLLABLES: [&str; 20] = [
            "ta", "re", "mi", "so", "lu", "ne", "ka", "di", "po", "ve", "sha", "bri", "on", "el",
            "ur", "ist", "am", "go", "zi", "fen",
        ];
        let mut word = String::new();
        loop {
            word.push_str(SYLLABLES[rank % SYLLABLES.len()]);
            rank /= SYLLABLES.len();
            if rank == 0 {
                return word;
            }
        }
    }

    fn random_word(&self, rng: &mut Rng) -> String {
        let next = fraction(rng);
        Self::spell(self.cumulative.partition_point(|value| *value < next))
    }

    pub(crate) fn title(&self, number: usize) -> String {
        let mut rng = Rng::new(number as u64);
        let words: Vec<String> = (0..5).map(|_| self.random_word(&mut rng)).collect();
        words.join(" ")
    }

    pub(crate) fn text(&self, number: usize, characters: usize) -> String {
        let mut rng = Rng::new(number as u64 + 1_000_003);
        let mut text = String::with_capacity(characters + 16);
        while text.len() < characters {
            text.push_str(&self.random_word(&mut rng));
            text.push_str(match rng.below(60) {
                0 => ".\n\n",
                1..5 => ". ",
                _ => " ",
            });
        }
        text
    }

    pub(crate) fn query(&self, kind: Kind, number: usize) -> String {
        let mut rng = Rng::new(number as u64 + 7_000_001);
        let mut between = |from, to| Self::spell(from + rng.index(to - from));
        match kind {
            Kind::Rare => between(5_000, VOCABULARY_SIZE),
            Kind::TwoWords => format!("{} {}", between(200, 3_000), between(200, 3_000)),
            Kind::Mixed => {
                let (a, b) = (between(500, 5_000), between(500, 5_000));
                format!("{a} {} {b}", between(0, 5))
            }
            Kind::Sentence => {
                let common: Vec<String> = (0..4).map(|_| between(0, 100)).collect();
                let others: Vec<String> = (0..4).map(|_| between(100, 10_000)).collect();
                format!("{} {}", common.join(" "), others.join(" "))
            }
            Kind::Everywhere => between(0, 3),
        }
    }
}
