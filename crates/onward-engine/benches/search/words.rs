//! Words and texts that are the same in every run, with frequencies that fall as a language's do.

/// How many words there are.
const WORDS: usize = 30_000;

/// A kind of question.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// One word that few texts hold.
    Rare,
    /// Two words that some texts hold.
    Two,
    /// A few words, one of which stands nearly everywhere.
    Mixed,
    /// A sentence, as agents ask.
    Sentence,
    /// One word that stands in every chunk: the worst that can be asked.
    Everywhere,
}

/// Every kind.
pub(crate) const KINDS: [Kind; 5] = [
    Kind::Rare,
    Kind::Two,
    Kind::Mixed,
    Kind::Sentence,
    Kind::Everywhere,
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rare => "one rare word",
            Kind::Two => "two words",
            Kind::Mixed => "three words, one of them everywhere",
            Kind::Sentence => "a sentence of eight words",
            Kind::Everywhere => "one word that is everywhere",
        }
    }
}

/// The words, by how often they are used.
pub(crate) struct Words {
    /// How much of all use the words up to each make up.
    shares: Vec<f64>,
}

/// Splitmix: good enough to make texts of.
struct Dice(u64);

impl Dice {
    fn of(seed: usize) -> Self {
        Self(u64::try_from(seed).unwrap_or(0).wrapping_mul(0x9e37_79b9))
    }

    fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut roll = self.0;
        roll = (roll ^ (roll >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        roll = (roll ^ (roll >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((roll ^ (roll >> 31)) >> 32).unwrap_or(0);
        f64::from(bits) / f64::from(u32::MAX)
    }

    fn below(&mut self, from: usize, to: usize) -> usize {
        let span = u32::try_from(to - from).unwrap_or(1);
        let place = (self.roll() * f64::from(span)).floor();
        (from..to).nth(place as usize).unwrap_or(from)
    }
}

impl Words {
    pub(crate) fn new() -> Self {
        let mut sum = 0.0;
        let shares = (0..WORDS).map(|rank| {
            let rank = u32::try_from(rank).unwrap_or(u32::MAX);
            sum += 1.0 / (f64::from(rank) + 2.7);
            sum
        });
        let mut shares: Vec<f64> = shares.collect();
        shares.iter_mut().for_each(|share| *share /= sum);
        Self { shares }
    }

    /// A word of a language that nobody speaks; the more often it is used the shorter.
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

    fn any(&self, dice: &mut Dice) -> String {
        let roll = dice.roll();
        Self::spell(self.shares.partition_point(|share| *share < roll))
    }

    pub(crate) fn title(&self, number: usize) -> String {
        let mut dice = Dice::of(number + 1);
        let words: Vec<String> = (0..5).map(|_| self.any(&mut dice)).collect();
        words.join(" ")
    }

    pub(crate) fn text(&self, number: usize, characters: usize) -> String {
        let mut dice = Dice::of(number + 1_000_003);
        let mut text = String::with_capacity(characters + 16);
        while text.len() < characters {
            text.push_str(&self.any(&mut dice));
            text.push_str(match dice.below(0, 60) {
                0 => ".\n\n",
                1..5 => ". ",
                _ => " ",
            });
        }
        text
    }

    pub(crate) fn question(&self, kind: Kind, number: usize) -> String {
        let mut dice = Dice::of(number + 7_000_001);
        let mut between = |from, to| Self::spell(dice.below(from, to));
        match kind {
            Kind::Rare => between(5_000, WORDS),
            Kind::Two => format!("{} {}", between(200, 3_000), between(200, 3_000)),
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
