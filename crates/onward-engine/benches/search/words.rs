//! Deterministic words and texts, with word frequencies similar to a natural language.

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

/// The `splitmix64` generator; sufficient for test data.
struct Rng(u64);

impl Rng {
    fn new(seed: usize) -> Self {
        Self(u64::try_from(seed).unwrap_or(0).wrapping_mul(0x9e37_79b9))
    }

    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut next = self.0;
        next = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        next = (next ^ (next >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((next ^ (next >> 31)) >> 32).unwrap_or(0);
        f64::from(bits) / f64::from(u32::MAX)
    }

    fn below(&mut self, from: usize, to: usize) -> usize {
        let span = u32::try_from(to - from).unwrap_or(1);
        let place = (self.next() * f64::from(span)).floor();
        (from..to).nth(place as usize).unwrap_or(from)
    }
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
        let next = rng.next();
        Self::spell(self.cumulative.partition_point(|value| *value < next))
    }

    pub(crate) fn title(&self, number: usize) -> String {
        let mut rng = Rng::new(number + 1);
        let words: Vec<String> = (0..5).map(|_| self.random_word(&mut rng)).collect();
        words.join(" ")
    }

    pub(crate) fn text(&self, number: usize, characters: usize) -> String {
        let mut rng = Rng::new(number + 1_000_003);
        let mut text = String::with_capacity(characters + 16);
        while text.len() < characters {
            text.push_str(&self.random_word(&mut rng));
            text.push_str(match rng.below(0, 60) {
                0 => ".\n\n",
                1..5 => ". ",
                _ => " ",
            });
        }
        text
    }

    pub(crate) fn query(&self, kind: Kind, number: usize) -> String {
        let mut rng = Rng::new(number + 7_000_001);
        let mut between = |from, to| Self::spell(rng.below(from, to));
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
