//! The lines of a file, plain or gzip, with one line in memory at a time and lookahead.
//!
//! Compression is detected from the first bytes, not from the file name. Lines are not validated as
//! UTF-8; the JSON parser does that.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Error;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The UTF-8 byte order mark that some editors write.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const BUFFER: usize = 1 << 16;

/// The lines of one file.
pub(crate) struct Lines {
    name: String,
    input: Box<dyn BufRead>,
    lookahead: VecDeque<Vec<u8>>,
    /// The number of the last line returned, from 1.
    number: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        match open_decompressed(path) {
            Ok(input) => Ok(Lines {
                name,
                input,
                lookahead: VecDeque::new(),
                number: 0,
            }),
            Err(cause) => Err(Error::from_io(&name, cause)),
        }
    }

    /// The file name as given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reads the next non-blank line into `line` and returns its number.
    pub(crate) fn next(&mut self, line: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        loop {
            line.clear();
            match self.lookahead.pop_front() {
                Some(next) => *line = next,
                None => self.read(line)?,
            }
            if line.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            if !is_blank(line) {
                return Ok(Some(self.number));
            }
        }
    }

    /// The non-blank line `index` lines ahead, without consuming it.
    pub(crate) fn peek(&mut self, index: usize) -> Result<Option<(u64, &[u8])>, Error> {
        let mut filled = self.lookahead.iter().filter(|line| !is_blank(line)).count();
        while filled <= index {
            let mut line = Vec::new();
            self.read(&mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            filled += usize::from(!is_blank(&line));
            self.lookahead.push_back(line);
        }
        let numbered = (self.number + 1..).zip(&self.lookahead);
        Ok(numbered
            .filter(|(_, line)| !is_blank(line))
            .nth(index)
            .map(|(number, line)| (number, line.as_slice())))
    }

    /// The rest of the file, without consuming it.
    pub(crate) fn peek_all(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            let mut line = Vec::new();
            self.read(&mut line)?;
            if line.is_empty() {
                return Ok(self.lookahead.iter().flatten().copied().collect());
            }
            self.lookahead.push_back(line);
        }
    }

    /// The rest of the file as a byte stream.
    pub(crate) fn into_bytes(self) -> impl BufRead {
        let lookahead: Vec<u8> = self.lookahead.into_iter().flatten().collect();
        Cursor::new(lookahead).chain(self.input)
    }

    /// Appends one line with its line break, or nothing at the end of the file.
    fn read(&mut self, line: &mut Vec<u8>) -> Result<(), Error> {
        match self.input.read_until(b'\n', line) {
            Ok(_) => Ok(()),
            Err(cause) => Err(Error::from_io(&self.name, cause)),
        }
    }
}

/// The lines of a file as JSON. An invalid line is reported and skipped.
pub(crate) struct Records {
    lines: Lines,
    /// The content of a line, with an article, for errors.
    expected: &'static str,
    line: Vec<u8>,
    has_records: bool,
    first_error: Option<Error>,
}

/// A line of a file.
pub(crate) enum Record<T> {
    Value {
        number: u64,
        value: T,
    },
    /// The report about a skipped line.
    Skipped(String),
}

impl Records {
    pub(crate) fn new(lines: Lines, expected: &'static str) -> Self {
        Records {
            lines,
            expected,
            line: Vec::new(),
            has_records: false,
            first_error: None,
        }
    }

    /// The file name as given.
    pub(crate) fn name(&self) -> &str {
        self.lines.name()
    }

    /// The next line. Fails at the end of the file if no line is valid.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<Record<T>>, Error> {
        let Some(number) = self.lines.next(&mut self.line)? else {
            let error = self.first_error.take().filter(|_| !self.has_records);
            return error.map_or(Ok(None), Err);
        };
        let cause = match parse(&self.line) {
            Ok(value) => {
                self.has_records = true;
                return Ok(Some(Record::Value { number, value }));
            }
            Err(cause) => cause,
        };
        let name = self.lines.name();
        let is_truncated = self.line.last() != Some(&b'\n') && cause.is_eof();
        let error = Error::from_json(name, number, self.expected, cause);
        let report = if is_truncated {
            format!("`{name}`, line {number}: skipped the truncated last line")
        } else {
            format!("{error}; skipped the line")
        };
        self.first_error.get_or_insert(error);
        Ok(Some(Record::Skipped(report)))
    }
}

/// Parses a line as JSON, without its line break, so that errors are within the line.
pub(crate) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> serde_json::Result<T> {
    // The parser does not validate strings that it skips, and an invalid line cannot be edited.
    let text = std::str::from_utf8(line.trim_ascii_end()).map_err(serde::de::Error::custom)?;
    serde_json::from_str(text)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn open_decompressed(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    if !file.fill_buf()?.starts_with(&GZIP) {
        return skip_byte_order_mark(file);
    }
    skip_byte_order_mark(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
}

fn skip_byte_order_mark(mut text: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    if text.fill_buf()?.starts_with(&BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(Box::new(text))
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::parse;

    #[test]
    fn rejects_invalid_utf_8_in_a_skipped_field() {
        assert!(parse::<IgnoredAny>(b"{\"a\":\"b\"}\n").is_ok());
        assert!(parse::<IgnoredAny>(b"{\"a\":\"\xf4,\"}\n").is_err());
    }
}
