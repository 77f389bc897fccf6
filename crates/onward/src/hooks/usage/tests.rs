//! Transcripts with repeated ids, a partial last line, a rewritten file and a huge one.

use std::fs::File;
use std::io::Write;

use onward_testbed::TestDir;

use super::*;

fn line(id: &str, input: u64, output: u64) -> String {
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"usage\":{{\"input_tokens\":{input},\
         \"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":7,\
         \"output_tokens\":{output}}}}}}}\n"
    )
}

struct Transcript {
    file: File,
    position: TranscriptPosition,
    _dir: TestDir,
}

impl Transcript {
    fn new() -> Self {
        let dir = TestDir::new("transcript");
        let path = dir.write("session.jsonl", "");
        let position = TranscriptPosition {
            path: path.display().to_string(),
            ..TranscriptPosition::default()
        };
        let file = File::options().append(true).open(path);
        Self {
            file: file.expect("file opened"),
            position,
            _dir: dir,
        }
    }

    fn append(&mut self, text: &str) {
        self.file.write_all(text.as_bytes()).expect("file written");
    }

    /// The tokens since the last read.
    fn count(&mut self) -> Option<u64> {
        read(&mut self.position).map(|tokens| tokens.total())
    }
}

#[test]
fn a_response_of_several_lines_counts_once() {
    let mut transcript = Transcript::new();
    assert_eq!(transcript.count(), None);
    transcript.append(&line("a", 1, 1));
    transcript.append(&line("a", 1, 1));
    transcript
        .append("{\"type\":\"user\",\"message\":{\"content\":\"usage\"}}\nnot JSON \"usage\"\n");
    assert_eq!(transcript.count(), Some(14));
    // Also if its lines are read by different hooks; later lines may have more output.
    transcript.append(&line("a", 1, 31));
    transcript.append(&line("b", 2, 2));
    assert_eq!(transcript.count(), Some(30 + 16));
    assert_eq!(transcript.count(), None);
}

#[test]
fn a_partial_line_is_read_when_it_is_complete() {
    let mut transcript = Transcript::new();
    let text = line("a", 1, 1);
    let (begin, end) = text.split_at(40);
    transcript.append(begin);
    assert_eq!(transcript.count(), None);
    transcript.append(end);
    assert_eq!(transcript.count(), Some(14));
}

#[test]
fn a_rewritten_file_is_not_counted_again() {
    let mut transcript = Transcript::new();
    transcript.append(&line("a", 1, 1).repeat(3));
    assert_eq!(transcript.count(), Some(14));
    transcript.file.set_len(0).expect("file truncated");
    transcript.append(&line("a", 1, 1));
    assert_eq!(transcript.count(), Some(0));
    transcript.append(&line("c", 3, 3));
    assert_eq!(transcript.count(), Some(18));
}

#[test]
fn a_huge_file_is_read_in_parts() {
    let mut transcript = Transcript::new();
    let long = format!("{{\"text\":\"{}\"}}\n", "x".repeat(3 << 20));
    transcript.append(&line("a", 1, 1));
    transcript.append(&long);
    transcript.append(&line("b", 2, 2));
    let mut counts = Vec::new();
    while let Some(count) = transcript.count() {
        counts.push(count);
    }
    assert!(counts.len() > 2, "{counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 14 + 16);
}
