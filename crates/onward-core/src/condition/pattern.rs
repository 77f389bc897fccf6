//! The patterns of `matches`: compiled at creation, with a known cost per byte.
//!
//! Most patterns are compiled to a DFA: one step per byte. Patterns whose DFA would be too large
//! (`a.{0,9}b`) run as an NFA and are charged for every state at every byte. Engines that choose at
//! run time are faster on average, but hundreds of times slower on adversarial texts. All patterns
//! of one condition share one budget.
//!
//! As in RE2, which CEL specifies, `\d`, `\w`, `\s` and `\b` are ASCII, and `.` and `[..]` match
//! whole characters. `\p{..}` and word boundaries with braces are rejected.

use std::iter::Peekable;
use std::str::Chars;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};

/// The remaining budget for the patterns of one condition, in bytes of memory during compilation.
///
/// It also limits the compile time: building a DFA takes at most one pass over the program per
/// transition.
pub(super) struct PatternBudget {
    program: usize,
    automaton: usize,
}

impl Default for PatternBudget {
    fn default() -> PatternBudget {
        PatternBudget {
            program: 24 * 1024,
            automaton: 48 * 1024,
        }
    }
}

impl PatternBudget {
    /// The used part of the budget.
    pub(super) fn taken(&self) -> usize {
        let whole = PatternBudget::default();
        (whole.program - self.program) + (whole.automaton - self.automaton)
    }
}

/// A compiled pattern.
pub(super) enum Pattern {
    Automaton(Box<dense::DFA<Vec<u32>>>),
    Stepwise(PikeVM),
}

const TOO_COMPLEX: &str = "the pattern is too complex; use fewer or shorter repetitions, or fewer \
                           patterns";

impl Pattern {
    /// Compiles a pattern. The error is a message.
    pub(super) fn compile(pattern: &str, left: &mut PatternBudget) -> Result<Pattern, String> {
        let syntax = syntax::Config::new().nest_limit(32);
        let parsed = syntax::parse_with(&expand_ascii_classes(pattern)?, &syntax)
            .map_err(|error| invalid_pattern(&error.to_string()))?;
        let program = thompson::Compiler::new()
            .configure(
                thompson::Config::new()
                    .which_captures(thompson::WhichCaptures::None)
                    .nfa_size_limit(Some(left.program)),
            )
            .build_from_hir(&parsed)
            .map_err(|_| TOO_COMPLEX)?;
        left.program = left.program.saturating_sub(program.memory_usage());
        Pattern::build(program, left)
    }

    fn build(program: NFA, left: &mut PatternBudget) -> Result<Pattern, String> {
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
                // The failed attempt took as long as using the budget, so little is left for
                // further patterns.
                left.automaton /= 4;
                PikeVM::new_from_nfa(program)
                    .map(Pattern::Stepwise)
                    .map_err(|_| TOO_COMPLEX.to_owned())
            }
            Err(_) => {
                Err("unsupported word boundary in the pattern; use `\\b` or `\\B`".to_owned())
            }
        }
    }

    /// The work for searching a text of this many bytes.
    pub(super) fn work(&self, bytes: usize) -> u64 {
        /// The cost of one state per byte.
        const STATE: u64 = 8;
        match self {
            Pattern::Automaton(_) => bytes as u64,
            // The extra 8 bytes account for the initialization of every state.
            Pattern::Stepwise(program) => {
                let states = program.get_nfa().states().len() as u64;
                (bytes as u64 + 8).saturating_mul(states * STATE)
            }
        }
    }

    /// Whether the pattern matches anywhere in the text.
    pub(super) fn occurs_in(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        match self {
            // The search cannot fail: the DFA has no quit bytes.
            Pattern::Automaton(automaton) => {
                matches!(automaton.try_search_fwd(&input), Ok(Some(_)))
            }
            Pattern::Stepwise(program) => program.is_match(&mut program.create_cache(), input),
        }
    }
}

/// The message of the regex parser, without its illustration of the position.
fn invalid_pattern(error: &str) -> String {
    let reason = error.rsplit("error: ").next().unwrap_or(error).trim();
    format!("invalid pattern: {reason}; use RE2 syntax")
}

/// Expands the classes and boundaries that are ASCII in RE2.
fn expand_ascii_classes(pattern: &str) -> Result<String, String> {
    if sets_flag(pattern, 'x') {
        return Err("the flag `x` is not supported; use `i`, `m`, `s` or `U`".to_owned());
    }
    // Case folding takes time for every character in a class, up to a million. The few forms that
    // can be that large are rejected.
    let ignores_case = sets_flag(pattern, 'i');
    let mut expanded = String::with_capacity(pattern.len());
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
                    &mut expanded,
                )?;
            }
            // In RE2 a class contains characters and `[:names:]`, but no nested classes or
            // operators.
            '[' if classes > 0 && characters.peek() != Some(&':') => expanded.push_str(r"\["),
            '&' | '~' if classes > 0 => expanded.extend(['\\', character]),
            '[' => {
                if ignores_case && classes > 0 {
                    return Err(unsupported_with_i("a nested class"));
                }
                classes = classes.saturating_add(1);
                expanded.push('[');
                open_class(&mut characters, &mut expanded);
            }
            ']' => {
                classes = classes.saturating_sub(1);
                expanded.push(']');
            }
            other => {
                if ignores_case && classes > 0 && !other.is_ascii() && expanded.ends_with('-') {
                    return Err(unsupported_with_i("a range that ends outside ASCII"));
                }
                expanded.push(other);
            }
        }
    }
    Ok(expanded)
}

/// Directly after `[`, a `^` negates and a `]` is an ordinary character.
fn open_class(characters: &mut Peekable<Chars<'_>>, expanded: &mut String) {
    for special in ['^', ']'] {
        if let Some(found) = characters.next_if_eq(&special) {
            expanded.push(found);
        }
    }
}

fn escape(
    escaped: Option<char>,
    following: Option<&char>,
    in_class: bool,
    ignores_case: bool,
    expanded: &mut String,
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
                "classes such as `\\pL` are not supported; list the characters, as in \
                 `[a-zäöü]`"
                    .to_owned(),
            );
        }
        Some('x' | 'u' | 'U') if ignores_case && in_class => {
            return Err(unsupported_with_i("an escaped code point in a class"));
        }
        other => {
            expanded.push('\\');
            expanded.extend(other);
            return Ok(());
        }
    };
    if ignores_case && in_class && matches!(escaped, Some('D' | 'W' | 'S')) {
        return Err(unsupported_with_i("a negated class in a class"));
    }
    expanded.push_str(ascii);
    Ok(())
}

/// Whether any group of the pattern sets this flag.
fn sets_flag(pattern: &str, flag: char) -> bool {
    pattern.split("(?").skip(1).any(|group| {
        let flags = group.split([':', ')']).next().unwrap_or_default();
        flags.contains(flag) && flags.chars().all(|c| c.is_ascii_alphabetic() || c == '-')
    })
}

fn unsupported_with_i(form: &str) -> String {
    format!("`(?i)` does not support {form}; list both cases")
}
