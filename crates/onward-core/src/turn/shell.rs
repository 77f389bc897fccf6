//! Splits a shell command line into simple commands, to classify them.
//!
//! This is not a shell: it handles words, quotes, redirections and command separators. In doubt, a
//! word is not [literal](ShellWord::literal), or an unknown word is kept. The lists of commands are
//! in [`intent`](super::intent) and [`noop`](super::noop).

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellWord {
    /// The text without quotes.
    pub(crate) text: String,
    /// Whether the word is literal: without expansions, and with its quotes closed.
    pub(crate) literal: bool,
}

/// A simple command, delimited by `;`, `&&`, `||`, `|`, `&` and line ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// The words, without leading assignments.
    pub(crate) words: Vec<ShellWord>,
    /// The target of an output redirection, except files in `/dev/` and streams.
    pub(crate) writes_to: Option<String>,
    /// The source of an input redirection.
    pub(crate) reads_from: Option<String>,
    /// Whether its input is a here-document.
    pub(crate) here_document: bool,
}

impl SimpleCommand {
    /// The command's name without its directory.
    pub(crate) fn name(&self) -> &str {
        let word = self.words.first().map_or("", |word| &word.text);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// The words after the name.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }
}

/// Splits a command line. Drops comments and empty commands.
pub(crate) fn split(line: &str) -> Vec<SimpleCommand> {
    let mut splitter = Splitter::default();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        splitter.take(c, &mut rest);
    }
    splitter.end_command();
    splitter.done
}

/// The role of the next word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Argument,
    Output,
    Input,
    HereDocument,
}

#[derive(Default)]
struct Splitter {
    done: Vec<SimpleCommand>,
    current: SimpleCommand,
    word: Option<ShellWord>,
    expect: Expect,
    here: Option<String>,
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

impl Splitter {
    fn take(&mut self, c: char, rest: &mut Rest<'_>) {
        match c {
            '\'' => self.single_quoted(rest),
            '"' => self.double_quoted(rest),
            '\\' => match rest.next() {
                Some('\n') | None => {}
                Some(next) => self.push(next, true),
            },
            '#' if self.word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' | '\r' => self.end_word(),
            '\n' => {
                self.end_command();
                self.skip_here_document(rest);
            }
            '&' if rest.peek() == Some(&'>') => {
                self.end_word();
                self.redirect(rest);
            }
            ';' | '|' | '&' | '(' | ')' => self.end_command(),
            '>' => {
                // The digit in `2>` is a stream number, not a word.
                let stream = self.word.take_if(|word| word.text.parse::<u8>().is_ok());
                if stream.is_none() {
                    self.end_word();
                }
                self.redirect(rest);
            }
            '<' => {
                self.end_word();
                self.expect = match rest.next_if_eq(&'<') {
                    Some(_) => Expect::HereDocument,
                    None => Expect::Input,
                };
                while rest.next_if(|c| matches!(c, '<' | '-')).is_some() {}
            }
            '$' | '`' => self.push(c, false),
            '*' | '?' => self.push(c, false),
            c => self.push(c, true),
        }
    }

    fn push(&mut self, c: char, literal: bool) {
        let word = self.open_word();
        word.text.push(c);
        word.literal &= literal;
    }

    fn open_word(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_with(|| ShellWord {
            text: String::new(),
            literal: true,
        })
    }

    fn single_quoted(&mut self, rest: &mut Rest<'_>) {
        let word = self.open_word();
        for c in rest.by_ref() {
            if c == '\'' {
                return;
            }
            word.text.push(c);
        }
        word.literal = false;
    }

    fn double_quoted(&mut self, rest: &mut Rest<'_>) {
        let word = self.open_word();
        while let Some(c) = rest.next() {
            match c {
                '"' => return,
                '\\' => word.text.extend(rest.next()),
                '$' | '`' => {
                    word.text.push(c);
                    word.literal = false;
                }
                c => word.text.push(c),
            }
        }
        word.literal = false;
    }

    /// After `>`: handles `>>`, `>|` and `>&1`; otherwise a file name follows.
    fn redirect(&mut self, rest: &mut Rest<'_>) {
        while rest.next_if(|c| matches!(c, '>' | '|')).is_some() {}
        if rest.next_if_eq(&'&').is_some() {
            while rest.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
        } else {
            self.expect = Expect::Output;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::take(&mut self.expect) {
            Expect::Output if word.text.starts_with("/dev/") => {}
            Expect::Output => self.current.writes_to = Some(word.text),
            Expect::Input => self.current.reads_from = Some(word.text),
            Expect::HereDocument => {
                self.here = Some(word.text);
                self.current.here_document = true;
            }
            Expect::Argument => {
                let assigns = self.current.words.is_empty()
                    && word.text.split_once('=').is_some_and(|(name, _)| {
                        !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric())
                    });
                if !assigns {
                    self.current.words.push(word);
                }
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.expect = Expect::Argument;
        let command = std::mem::take(&mut self.current);
        if command != SimpleCommand::default() {
            self.done.push(command);
        }
    }

    /// The lines of a here-document are data, not commands.
    fn skip_here_document(&mut self, rest: &mut Rest<'_>) {
        let Some(end) = self.here.take() else { return };
        let mut line = String::new();
        for c in rest.by_ref() {
            if c != '\n' {
                line.push(c);
            } else if line.trim() == end {
                return;
            } else {
                line.clear();
            }
        }
    }
}
