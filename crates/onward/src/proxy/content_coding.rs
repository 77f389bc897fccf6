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

    /// `{"text":"a…"}` with 200 times `a`, compressed with Brotli.
    const BROTLI: &[u8] = &[
        27, 210, 0, 248, 141, 212, 98, 205, 25, 238, 148, 34, 97, 123, 165, 211, 87, 146, 140, 86,
        8, 136, 96, 7, 16, 2,
    ];

    #[test]
    fn decodes_every_coding() {
        use std::io::Write;
        let text = format!("{{\"text\":\"{}\"}}", "a".repeat(200)).into_bytes();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).expect("write to memory");
        deflate.write_all(&text).expect("write to memory");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        for (coding, body) in [
            (ContentCoding::Gzip, gzip.finish().expect("write to memory")),
            (
                ContentCoding::Deflate,
                deflate.finish().expect("write to memory"),
            ),
            (ContentCoding::Brotli, BROTLI.to_vec()),
            (
                ContentCoding::Zstandard,
                ruzstd::encoding::compress_to_vec(text.as_slice(), level),
            ),
        ] {
            assert_eq!(
                coding.decode(&body, 1_000).as_ref(),
                Some(&text),
                "{coding:?}"
            );
            assert_eq!(coding.decode(&body, 100), None, "{coding:?}");
        }
    }

    #[test]
    fn rejects_damaged_bodies() {
        for coding in [
            ContentCoding::Gzip,
            ContentCoding::Deflate,
            ContentCoding::Brotli,
            ContentCoding::Zstandard,
        ] {
            assert_eq!(coding.decode(b"not compressed", 100), None, "{coding:?}");
        }
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
