//! The patterns of `matches`: compiled when the condition is made, at a known price per byte after.
//!
//! Most patterns become a whole automaton: one step per byte, whatever the text. Those that would
//! explode (`a.{0,9}b`, where every `a` opens a gap) are walked state by state, and pay for every
//! state at every byte. Engines that choose on the way are faster on average, and hundreds of
//! times slower where a text provokes it. All patterns of one condition draw on one allowance.
//!
//! As in RE2, whose syntax CEL asks for, `\d`, `\w`, `\s` and `\b` mean ASCII, and `.` and `[..]`
//! whole characters. `\p{..}` and word boundaries with braces are refused.

use std::iter::Peekable;
use std::str::Chars;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// What is left for the patterns of one condition, in bytes of memory while they are compiled.
///
/// Both bound the time as well: an automaton takes at most one pass over its program for each of
/// its transitions.
pub(super) struct Allowance {
    program: usize,
    automaton: usize,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance {
            program: 24 * 1024,
            automaton: 48 * 1024,
        }
    }
}

impl Allowance {
    /// How much of it is gone.
    pub(super) fn taken(&self) -> usize {
        let whole = Allowance::default();
        (whole.program - self.program) + (whole.automaton - self.automaton)
    }
}

/// A pattern, ready to be searched for.
pub(super) enum Pattern {
    Automaton(Box<dense::DFA<Vec<u32>>>),
    Stepwise(PikeVM),
}

const TOO_COMPLEX: &str = "the pattern is too complex; expected fewer or shorter repetitions, or \
                           fewer patterns";

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(super) fn compile(pattern: &str, left: &mut Allowance) -> Result<Pattern, String> {
        let syntax = syntax::Config::new().nest_limit(32);
        let parsed = syntax::parse_with(&in_ascii(pattern)?, &syntax)
            .map_err(|error| complaint(&error.to_string()))?;
        let program = thompson::Compiler::new()
            .configure(
                thompson::Config::new()
                    .which_captures(thompson::WhichCaptures::None)
                    .nfa_size_limit(Some(left.program)),
            )
            .build_from_hir(&parsed)
            .map_err(|_| TOO_COMPLEX)?;
        left.program = left.program.saturating_sub(program.memory_usage());
        Pattern::of(program, left)
    }

    fn of(program: NFA, left: &mut Allowance) -> Result<Pattern, String> {
        let built = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .start_kind(StartKind::Unanchored)
                    .match_kind(MatchKind::All)
                    .accelerate(false)
                    .dfa_size_limit(Some(left.automaton))
                    .determinize_size_limit(Some(2 * left.automaton)),
            )
            .build_from_nfa(&program);
        match built {
            Ok(automaton) => {
                left.automaton = left.automaton.saturating_sub(automaton.memory_usage());
                Ok(Pattern::Automaton(Box::new(automaton)))
            }
            Err(error) if error.is_size_limit_exceeded() => {
                // Little is left for the next: finding out took as long as using it up.
                left.automaton /= 4;
                PikeVM::new_from_nfa(program)
                    .map(Pattern::Stepwise)
                    .map_err(|_| TOO_COMPLEX.to_owned())
            }
            Err(_) => Err(
                "the pattern holds a word boundary other than `\\b` and `\\B`; expected those"
                    .to_owned(),
            ),
        }
    }

    /// How much work it is to look for it in a text of that many bytes.
    pub(super) fn work(&self, bytes: usize) -> u64 {
        /// What one state costs at one byte.
        const STATE: u64 = 8;
        match self {
            Pattern::Automaton(_) => bytes as u64,
            // Before the first byte, every state gets its place.
            Pattern::Stepwise(program) => {
                let states = program.get_nfa().states().len() as u64;
                (bytes as u64 + 8).saturating_mul(states * STATE)
            }
        }
    }

    /// Whether it occurs anywhere in the text.
    pub(super) fn occurs_in(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        match self {
            // A search fails on bytes that an automaton was told to give up at; ours was told none.
            Pattern::Automaton(automaton) => {
                matches!(automaton.try_search_fwd(&input), Ok(Some(_)))
            }
            Pattern::Stepwise(program) => program.is_match(&mut program.create_cache(), input),
        }
    }
}

/// What the parser of patterns says, without its drawing of the place.
fn complaint(error: &str) -> String {
    let reason = error.rsplit("error: ").next().unwrap_or(error).trim();
    format!("not a valid pattern: {reason}; expected the syntax of RE2")
}

/// The pattern with the classes and boundaries that RE2 holds to be ASCII spelled out as such.
fn in_ascii(pattern: &str) -> Result<String, String> {
    if asks_for(pattern, 'x') {
        return Err("the flag `x` is not supported; expected `i`, `m`, `s` or `U`".to_owned());
    }
    // To fold the case of a class takes time for every character in it, a million for some; the few
    // forms that can be so large are refused.
    let ignores_case = asks_for(pattern, 'i');
    let mut spelled = String::with_capacity(pattern.len());
    let mut classes = 0u32;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                escape(
                    escaped,
                    characters.peek(),
                    classes > 0,
                    ignores_case,
                    &mut spelled,
                )?;
            }
            // In RE2 a class holds characters and `[:names:]`; it has no classes and operators inside.
            '[' if classes > 0 && characters.peek() != Some(&':') => spelled.push_str(r"\["),
            '&' | '~' if classes > 0 => spelled.extend(['\\', character]),
            '[' => {
                if ignores_case && classes > 0 {
                    return Err(costly("a class in a class"));
                }
                classes = classes.saturating_add(1);
                spelled.push('[');
                open_class(&mut characters, &mut spelled);
            }
            ']' => {
                classes = classes.saturating_sub(1);
                spelled.push(']');
            }
            other => {
                if ignores_case && classes > 0 && !other.is_ascii() && spelled.ends_with('-') {
                    return Err(costly("a range that ends outside ASCII"));
                }
                spelled.push(other);
            }
        }
    }
    Ok(spelled)
}

/// Right after `[`, a `^` negates and a `]` is an ordinary character.
fn open_class(characters: &mut Peekable<Chars<'_>>, spelled: &mut String) {
    for special in ['^', ']'] {
        if let Some(found) = characters.next_if_eq(&special) {
            spelled.push(found);
        }
    }
}

fn escape(
    escaped: Option<char>,
    following: Option<&char>,
    in_class: bool,
    ignores_case: bool,
    spelled: &mut String,
) -> Result<(), String> {
    let ascii = match escaped {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => r"[\t\n\f\r ]",
        Some('S') => r"[^\t\n\f\r ]",
        Some('b') if !in_class && following != Some(&'{') => r"(?-u:\b)",
        Some('B') if !in_class && following != Some(&'{') => r"(?-u:\B)",
        Some('p' | 'P') => {
            return Err(
                "classes such as `\\pL` are not supported; expected the characters \
                        themselves, as in `[a-zäöü]`"
                    .to_owned(),
            );
        }
        Some('x' | 'u' | 'U') if ignores_case && in_class => {
            return Err(costly("a code in a class"));
        }
        other => {
            spelled.push('\\');
            spelled.extend(other);
            return Ok(());
        }
    };
    if ignores_case && in_class && matches!(escaped, Some('D' | 'W' | 'S')) {
        return Err(costly("a negated class in a class"));
    }
    spelled.push_str(ascii);
    Ok(())
}

/// Whether any group of the pattern asks for this flag.
fn asks_for(pattern: &str, flag: char) -> bool {
    pattern.split("(?").skip(1).any(|group| {
        let flags = group.split([':', ')']).next().unwrap_or_default();
        flags.contains(flag) && flags.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
    })
}

fn costly(form: &str) -> String {
    format!("`(?i)` cannot be used with {form}; expected both cases written out")
}
