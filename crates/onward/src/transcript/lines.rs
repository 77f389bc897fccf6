//! A file as lines of bytes: unpacked where it is packed, one line in memory at a time, with a
//! look ahead for whoever has to tell what the file is.
//!
//! Whether a file is packed is told by its first bytes, not by its name. Lines are not checked to
//! be UTF-8: the JSON parser does that.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::Error;

/// What gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What some editors put before the text.
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const BUFFER: usize = 1 << 16;

/// The lines of one file.
pub(crate) struct Lines {
    name: String,
    input: Box<dyn BufRead>,
    ahead: VecDeque<Vec<u8>>,
    /// The number of the last line that was given out, from 1.
    number: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        match unpacked(path) {
            Ok(input) => Ok(Lines {
                name,
                input,
                ahead: VecDeque::new(),
                number: 0,
            }),
            Err(cause) => Err(Error::of_system(&name, cause)),
        }
    }

    /// The file as it was named.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Puts the next line that is not blank into `line`, and says its number; none at the end.
    pub(crate) fn next(&mut self, line: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        loop {
            line.clear();
            match self.ahead.pop_front() {
                Some(ahead) => *line = ahead,
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

    /// The line that lies `index` lines ahead of the next one that is not blank. It will be given
    /// out all the same.
    pub(crate) fn look(&mut self, index: usize) -> Result<Option<(u64, &[u8])>, Error> {
        let mut filled = self.ahead.iter().filter(|line| !is_blank(line)).count();
        while filled <= index {
            let mut line = Vec::new();
            self.read(&mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            filled += usize::from(!is_blank(&line));
            self.ahead.push_back(line);
        }
        let numbered = (self.number + 1..).zip(&self.ahead);
        Ok(numbered
            .filter(|(_, line)| !is_blank(line))
            .nth(index)
            .map(|(number, line)| (number, line.as_slice())))
    }

    /// Everything from the next line on, which will be given out all the same.
    pub(crate) fn look_at_all(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            let mut line = Vec::new();
            self.read(&mut line)?;
            if line.is_empty() {
                return Ok(self.ahead.iter().flatten().copied().collect());
            }
            self.ahead.push_back(line);
        }
    }

    /// What is left, as one stream of bytes.
    pub(crate) fn into_bytes(self) -> impl BufRead {
        let ahead: Vec<u8> = self.ahead.into_iter().flatten().collect();
        Cursor::new(ahead).chain(self.input)
    }

    /// Appends one line with its end; nothing at the end of the file.
    fn read(&mut self, line: &mut Vec<u8>) -> Result<(), Error> {
        match self.input.read_until(b'\n', line) {
            Ok(_) => Ok(()),
            Err(cause) => Err(Error::of_system(&self.name, cause)),
        }
    }
}

/// The JSON value that is a line. Without the line's end, so that an error lies within the line.
pub(crate) fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_slice(line.trim_ascii_end())
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

fn unpacked(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path)?);
    if !file.fill_buf()?.starts_with(&GZIP) {
        return after_mark(file);
    }
    after_mark(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
}

fn after_mark(mut text: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    if text.fill_buf()?.starts_with(&BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(Box::new(text))
}
