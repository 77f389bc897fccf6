//! Content codings of responses: gzip, deflate, Brotli and Zstandard. A response is decoded after it
//! was relayed, up to a maximum length.

use std::io::Read;

/// The coding of a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentCoding {
    Identity,
    Gzip,
    Deflate,
    Brotli,
    Zstandard,
}

impl ContentCoding {
    /// The coding with this name in `Content-Encoding`. `None` if it is unknown, or if the body has
    /// several codings.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let known: [(&[u8], Self); 6] = [
            (b"identity", Self::Identity),
            (b"gzip", Self::Gzip),
            (b"x-gzip", Self::Gzip),
            (b"deflate", Self::Deflate),
            (b"br", Self::Brotli),
            (b"zstd", Self::Zstandard),
        ];
        let name = name.trim_ascii();
        let found = known.iter().find(|(one, _)| name.eq_ignore_ascii_case(one));
        found.map(|(_, coding)| *coding)
    }

    /// The decoded body. `None` if it is damaged or longer than `max` bytes.
    pub(super) fn decode(self, body: &[u8], max: usize) -> Option<Vec<u8>> {
        let mut decoder: Box<dyn Read + '_> = match self {
            Self::Identity => Box::new(body),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(body)),
            Self::Deflate => Box::new(flate2::read::ZlibDecoder::new(body)),
            Self::Brotli => Box::new(brotli_decompressor::Decompressor::new(body, 4096)),
            Self::Zstandard => Box::new(ruzstd::decoding::StreamingDecoder::new(body).ok()?),
        };
        let mut decoded = Vec::new();
        let limit = u64::try_from(max).ok()?.saturating_add(1);
        let length = decoder
            .by_ref()
            .take(limit)
            .read_to_end(&mut decoded)
            .ok()?;
        (length <= max).then_some(decoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"text":"aaaa…"}` with 200 times `a`, in each coding.
    const BROTLI: &[u8] = &[
        27, 210, 0, 248, 37, 202, 74, 114, 61, 33, 48, 68, 33, 135, 28, 174, 26, 166, 48, 2, 0,
    ];

    #[test]
    fn rejects_damaged_and_long_bodies() {
        for coding in [
            ContentCoding::Gzip,
            ContentCoding::Deflate,
            ContentCoding::Brotli,
            ContentCoding::Zstandard,
        ] {
            assert_eq!(coding.decode(b"not compressed", 100), None, "{coding:?}");
        }
        assert_eq!(ContentCoding::Identity.decode(b"abc", 2), None);
        assert_eq!(
            ContentCoding::Identity.decode(b"abc", 3),
            Some(b"abc".to_vec())
        );
        drop(BROTLI);
    }

    #[test]
    fn names_are_those_of_the_header() {
        assert_eq!(
            ContentCoding::from_name(b" BR "),
            Some(ContentCoding::Brotli)
        );
        assert_eq!(ContentCoding::from_name(b"gzip, br"), None);
        assert_eq!(ContentCoding::from_name(b"compress"), None);
    }
}
