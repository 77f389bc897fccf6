//! What a text means, as a model says it: numbers, of which only the direction counts.
//!
//! They are kept as whole numbers of eight bits, which costs a thousandth of the likeness of two texts
//! and saves three quarters of the room. Their signs alone, a bit each, tell roughly what is near: enough
//! to leave out nearly everything before the numbers themselves are compared.

/// More numbers than any model gives.
pub const MAX_DIMENSIONS: usize = 16_384;

/// The direction of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    parts: Vec<i8>,
}

impl Vector {
    /// Takes a model's numbers. None where they have no direction: there are none or too many, all are
    /// zero, or one is no number.
    pub fn of(numbers: &[f32]) -> Option<Self> {
        let largest = numbers.iter().fold(0f32, |most, part| most.max(part.abs()));
        let fits = numbers.len() <= MAX_DIMENSIONS && largest.is_finite() && largest > 0.0;
        if !fits || numbers.iter().any(|part| part.is_nan()) {
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "at most 127, by the division"
        )]
        let small = |part: &f32| (part / largest * 127.0).round() as i8;
        let parts = numbers.iter().map(small).collect();
        Some(Self { parts })
    }

    /// How many numbers there are.
    pub fn dimensions(&self) -> usize {
        self.parts.len()
    }

    /// On which side of zero each of them lies.
    pub fn sign(&self) -> Vec<bool> {
        self.parts.iter().map(|part| *part > 0).collect()
    }

    /// A sign as bytes, the first bit the highest.
    pub fn packed(sign: &[bool]) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            let bits = bits.iter().zip((0..8).rev());
            bits.fold(0u8, |byte, (bit, place)| byte | (u8::from(*bit) << place))
        };
        sign.chunks(8).map(byte).collect()
    }

    /// As it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts
            .iter()
            .map(|part| part.to_ne_bytes()[0])
            .collect()
    }

    /// What was kept. None where that has no direction.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let parts: Vec<i8> = bytes
            .iter()
            .map(|byte| i8::from_ne_bytes([*byte]))
            .collect();
        parts
            .iter()
            .any(|part| *part != 0)
            .then_some(Self { parts })
    }

    /// How alike two directions are: 1 the same, 0 nothing in common, -1 opposite. None where they come
    /// from models that give another number of numbers.
    pub fn likeness(&self, other: &Self) -> Option<f64> {
        if self.parts.len() != other.parts.len() {
            return None;
        }
        let dot = |one: &[i8], other: &[i8]| {
            let both = one.iter().zip(other);
            f64::from(
                both.map(|(one, other)| i32::from(*one) * i32::from(*other))
                    .sum::<i32>(),
            )
        };
        let lengths = dot(&self.parts, &self.parts) * dot(&other.parts, &other.parts);
        Some(dot(&self.parts, &other.parts) / lengths.sqrt())
    }
}

/// In how many places two signs differ. They have the same number of bytes.
pub fn apart(one: &[u8], other: &[u8]) -> u32 {
    let (long, rest) = one.as_chunks::<8>();
    let (other_long, other_rest) = other.as_chunks::<8>();
    let differ = |(one, other): (&[u8; 8], &[u8; 8])| {
        (u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*other)).count_ones()
    };
    let differs = |(one, other): (&u8, &u8)| (one ^ other).count_ones();
    let long: u32 = long.iter().zip(other_long).map(differ).sum();
    let rest: u32 = rest.iter().zip(other_rest).map(differs).sum();
    long + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(numbers: &[f32]) -> Vector {
        Vector::of(numbers).expect("a direction")
    }

    #[test]
    fn only_the_direction_counts() {
        let one = vector(&[0.3, -0.4, 0.0]);
        assert_eq!(one, vector(&[30.0, -40.0, 0.0]));
        let like = |other: &[f32]| one.likeness(&vector(other)).expect("as many");
        assert!((like(&[3.0, -4.0, 0.0]) - 1.0).abs() < 1e-9);
        assert!((like(&[-3.0, 4.0, 0.0]) + 1.0).abs() < 1e-9);
        assert!(like(&[0.0, 0.0, 1.0]).abs() < 1e-9);
        assert!((like(&[1.0, 0.0, 0.0]) - 0.6).abs() < 0.01);
        assert_eq!(one.likeness(&vector(&[1.0])), None);
    }

    #[test]
    fn what_has_no_direction_is_none() {
        for none in [&[][..], &[0.0, 0.0], &[1.0, f32::NAN], &[f32::INFINITY]] {
            assert_eq!(Vector::of(none), None, "{none:?}");
        }
        assert_eq!(Vector::of(&vec![1.0; MAX_DIMENSIONS + 1]), None);
        assert_eq!(Vector::from_bytes(&[0, 0]), None);
        assert_eq!(Vector::from_bytes(&[]), None);
    }

    #[test]
    fn what_was_kept_comes_back() {
        let kept = vector(&[1.0, -1.0, 0.5, -0.25, 0.0]);
        assert_eq!(Vector::from_bytes(&kept.to_bytes()), Some(kept.clone()));
        assert_eq!(kept.dimensions(), 5);
        assert_eq!(kept.sign(), [true, false, true, false, false]);
        assert_eq!(Vector::packed(&kept.sign()), [0b1010_0000]);
    }

    #[test]
    fn signs_are_apart_where_they_differ() {
        let one = [0u8; 20];
        let mut other = one;
        other[3] = 0b11;
        other[19] = 0b1000_0000;
        assert_eq!(apart(&one, &one), 0);
        assert_eq!(apart(&one, &other), 3);
    }
}
