//! Embedding vectors with int8 quantization. Only the direction of a vector counts.
//!
//! Eight bits per dimension change the similarity of two texts by about a thousandth and save three
//! quarters of the space. The sign bits alone give a rough distance, which filters out almost all
//! candidates before the int8 vectors are compared.

/// The maximum number of dimensions, more than any model has.
pub const MAX_DIMENSIONS: usize = 16_384;

/// A quantized embedding vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    parts: Vec<i8>,
}

impl Vector {
    /// Quantizes a model's embedding. `None` if it has no direction: empty, too many dimensions,
    /// all zero, or not finite.
    pub fn quantize(numbers: &[f32]) -> Option<Self> {
        let largest = numbers.iter().fold(0f32, |most, part| most.max(part.abs()));
        let fits = numbers.len() <= MAX_DIMENSIONS && largest.is_finite() && largest > 0.0;
        if !fits || numbers.iter().any(|part| part.is_nan()) {
            return None;
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the division limits the value to 127"
        )]
        let quantize = |part: &f32| (part / largest * 127.0).round() as i8;
        let parts = numbers.iter().map(quantize).collect();
        Some(Self { parts })
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.parts.len()
    }

    /// For each dimension, whether it is positive.
    pub fn sign_bits(&self) -> Vec<bool> {
        self.parts.iter().map(|part| *part > 0).collect()
    }

    /// Packs sign bits into bytes, most significant bit first.
    pub fn pack_bits(sign: &[bool]) -> Vec<u8> {
        let byte = |bits: &[bool]| {
            let bits = bits.iter().zip((0..8).rev());
            bits.fold(0u8, |byte, (bit, place)| byte | (u8::from(*bit) << place))
        };
        sign.chunks(8).map(byte).collect()
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts
            .iter()
            .map(|part| part.to_ne_bytes()[0])
            .collect()
    }

    /// Reads the stored form. `None` if all dimensions are zero.
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

    /// The cosine similarity: 1 for the same direction, 0 for orthogonal, -1 for opposite
    /// directions. `None` if the numbers of dimensions differ.
    pub fn cosine_similarity(&self, other: &Self) -> Option<f64> {
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

/// The number of differing bits of two packed sign vectors of the same length.
pub fn hamming_distance(one: &[u8], other: &[u8]) -> u32 {
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
        Vector::quantize(numbers).expect("the vector has a direction")
    }

    #[test]
    fn only_the_direction_counts() {
        let one = vector(&[0.3, -0.4, 0.0]);
        assert_eq!(one, vector(&[30.0, -40.0, 0.0]));
        let similarity = |other: &[f32]| {
            one.cosine_similarity(&vector(other))
                .expect("the dimensions are equal")
        };
        assert!((similarity(&[3.0, -4.0, 0.0]) - 1.0).abs() < 1e-9);
        assert!((similarity(&[-3.0, 4.0, 0.0]) + 1.0).abs() < 1e-9);
        assert!(similarity(&[0.0, 0.0, 1.0]).abs() < 1e-9);
        assert!((similarity(&[1.0, 0.0, 0.0]) - 0.6).abs() < 0.01);
        assert_eq!(one.cosine_similarity(&vector(&[1.0])), None);
    }

    #[test]
    fn rejects_vectors_without_a_direction() {
        for none in [&[][..], &[0.0, 0.0], &[1.0, f32::NAN], &[f32::INFINITY]] {
            assert_eq!(Vector::quantize(none), None, "{none:?}");
        }
        assert_eq!(Vector::quantize(&vec![1.0; MAX_DIMENSIONS + 1]), None);
        assert_eq!(Vector::from_bytes(&[0, 0]), None);
        assert_eq!(Vector::from_bytes(&[]), None);
    }

    #[test]
    fn stored_bytes_restore_the_vector() {
        let kept = vector(&[1.0, -1.0, 0.5, -0.25, 0.0]);
        assert_eq!(Vector::from_bytes(&kept.to_bytes()), Some(kept.clone()));
        assert_eq!(kept.dimensions(), 5);
        assert_eq!(kept.sign_bits(), [true, false, true, false, false]);
        assert_eq!(Vector::pack_bits(&kept.sign_bits()), [0b1010_0000]);
    }

    #[test]
    fn hamming_distance_counts_differing_bits() {
        let one = [0u8; 20];
        let mut other = one;
        other[3] = 0b11;
        other[19] = 0b1000_0000;
        assert_eq!(hamming_distance(&one, &one), 0);
        assert_eq!(hamming_distance(&one, &other), 3);
    }
}
