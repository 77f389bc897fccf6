//! The size of a JSON text in memory, estimated before it is parsed: a value can be fifty times as
//! large as its text.

/// Estimates the size of a JSON text after parsing, from its structure: a map has room for eleven
/// fields, a list for four values.
pub(crate) fn estimate(json: &[u8]) -> usize {
    const MAP: usize = 704;
    const LIST: usize = 192;
    const ENTRY: usize = 64;
    let mut size = json.len();
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match (byte, in_string) {
            (_, true) if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'{', false) => size += MAP,
            (b'[', false) => size += LIST,
            (b',', false) => size += ENTRY,
            _ => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_structure_but_not_text() {
        assert_eq!(estimate(br#""[{,\"[{,""#), 10);
        assert_eq!(estimate(b"[1,2]"), 5 + 192 + 64);
        let many = format!("[{}]", "{\"a\":0},".repeat(1_000));
        assert!(estimate(many.as_bytes()) > 700_000);
    }
}
