//! What agents were told, line by line. An agent writes a line before each call, saying what it asks
//! for, and one right after the answer: what stands in such a line was acknowledged.
//!
//! A line is the mark, then a JSON list of words; whatever else a process prints is not ours.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use onward_core::{PlanId, StepId};

const MARK: &str = "onward ";

/// A claim, as it was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hold {
    pub step: StepId,
    pub attempt: u32,
    pub token: String,
}

/// What an agent is about to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    Create,
    Next,
    Submit { digest: String, claims: bool },
    Progress,
    Review,
    Decide,
    Modify,
}

/// What an agent was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Created {
        plan: PlanId,
        digest: String,
    },
    Claimed {
        plan: PlanId,
        hold: Hold,
    },
    Completed {
        plan: PlanId,
        step: StepId,
        digest: String,
        next: Option<Hold>,
    },
    /// Refused by a rule, and kept.
    Kept {
        plan: PlanId,
        artifact: String,
        text: String,
    },
    Progressed {
        plan: PlanId,
        step: StepId,
        note: String,
    },
    Asked {
        plan: PlanId,
        step: StepId,
        review: String,
    },
    Decided {
        plan: PlanId,
        step: StepId,
        feedback: String,
    },
    Modified {
        plan: PlanId,
        seq: u64,
    },
    /// The same answer as before, to the same result.
    Repeated,
    /// Nothing was done for the agent: refused by a rule, or nothing to hand out.
    Nothing {
        why: String,
    },
    /// Anything else. Nothing was done, unless the hint says that this is not known.
    Trouble {
        code: String,
        hint: String,
        words: String,
    },
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The process has opened its database.
    Ready,
    Asks(Call),
    Told(Told),
}

/// A line, whose it is, and how long the call took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub agent: String,
    pub micros: u64,
    pub what: What,
}

/// Where lines go.
pub type Telling = Arc<dyn Fn(Line) + Send + Sync>;

/// Writes lines to this process's output, each at once and in one piece.
pub fn to_stdout() -> Telling {
    use std::io::Write as _;
    Arc::new(|line: Line| {
        let mut text = line.written();
        text.push('\n');
        let mut out = std::io::stdout().lock();
        // A parent that is gone hears nothing, and the worker ends soon by itself.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    })
}

/// A short name for something that can be told apart by what it shows.
pub fn digest(of: &impl std::fmt::Debug) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{of:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Line {
    pub fn written(&self) -> String {
        let mut words = vec![self.agent.clone(), self.micros.to_string()];
        words.extend(self.what.words());
        let list = serde_json::to_string(&words).expect("words can be written");
        format!("{MARK}{list}")
    }

    /// None where the line is not ours.
    pub fn read(text: &str) -> Option<Self> {
        // What the test harness prints first does not end its line.
        let text = &text[text.find(MARK)?..];
        let words: Vec<String> = serde_json::from_str(text.strip_prefix(MARK)?).ok()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [agent, micros, rest @ ..] = words.as_slice() else {
            return None;
        };
        let what = What::read(rest).unwrap_or_else(|| panic!("`{text}` is no line"));
        let micros = micros.parse().ok()?;
        let agent = (*agent).to_owned();
        Some(Self {
            agent,
            micros,
            what,
        })
    }
}

impl What {
    fn words(&self) -> Vec<String> {
        let told = match self {
            What::Ready => return words(&["ready"]),
            What::Asks(Call::Submit { digest, claims }) => {
                return words(&["asks-submit", digest, if *claims { "claims" } else { "" }]);
            }
            What::Asks(call) => return words(&["asks", call.as_str()]),
            What::Told(told) => told,
        };
        match told {
            Told::Created { plan, digest } => words(&["created", &plan.to_string(), digest]),
            Told::Claimed { plan, hold } => {
                let mut all = words(&["claimed", &plan.to_string()]);
                all.extend(hold.words());
                all
            }
            Told::Completed {
                plan,
                step,
                digest,
                next,
            } => {
                let (plan, step) = (plan.to_string(), step.to_string());
                let mut all = words(&["completed", &plan, &step, digest]);
                all.extend(next.iter().flat_map(Hold::words));
                all
            }
            Told::Kept {
                plan,
                artifact,
                text,
            } => words(&["kept", &plan.to_string(), artifact, text]),
            Told::Progressed { plan, step, note } => {
                words(&["progressed", &plan.to_string(), &step.to_string(), note])
            }
            Told::Asked { plan, step, review } => {
                words(&["asked", &plan.to_string(), &step.to_string(), review])
            }
            Told::Decided {
                plan,
                step,
                feedback,
            } => words(&["decided", &plan.to_string(), &step.to_string(), feedback]),
            Told::Modified { plan, seq } => {
                words(&["modified", &plan.to_string(), &seq.to_string()])
            }
            Told::Repeated => words(&["repeated"]),
            Told::Nothing { why } => words(&["nothing", why]),
            Told::Trouble {
                code,
                hint,
                words: said,
            } => words(&["trouble", code, hint, said]),
        }
    }

    fn read(words: &[&str]) -> Option<Self> {
        let own = |word: &str| word.to_owned();
        let told = match words {
            ["ready"] => return Some(What::Ready),
            ["asks-submit", digest, claims] => {
                let (digest, claims) = (own(digest), !claims.is_empty());
                return Some(What::Asks(Call::Submit { digest, claims }));
            }
            ["asks", call] => return Call::read(call).map(What::Asks),
            ["created", plan, digest] => {
                let (plan, digest) = (plan.parse().ok()?, own(digest));
                Told::Created { plan, digest }
            }
            ["claimed", plan, hold @ ..] => {
                let (plan, hold) = (plan.parse().ok()?, Hold::read(hold)?);
                Told::Claimed { plan, hold }
            }
            ["completed", plan, step, digest, next @ ..] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                let (digest, next) = (own(digest), Hold::read(next));
                Told::Completed {
                    plan,
                    step,
                    digest,
                    next,
                }
            }
            ["kept", plan, artifact, text] => {
                let (plan, artifact) = (plan.parse().ok()?, own(artifact));
                Told::Kept {
                    plan,
                    artifact,
                    text: own(text),
                }
            }
            ["progressed", plan, step, note] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Told::Progressed {
                    plan,
                    step,
                    note: own(note),
                }
            }
            ["asked", plan, step, review] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Told::Asked {
                    plan,
                    step,
                    review: own(review),
                }
            }
            ["decided", plan, step, feedback] => {
                let (plan, step) = (plan.parse().ok()?, step.parse().ok()?);
                Told::Decided {
                    plan,
                    step,
                    feedback: own(feedback),
                }
            }
            ["modified", plan, seq] => {
                let (plan, seq) = (plan.parse().ok()?, seq.parse().ok()?);
                Told::Modified { plan, seq }
            }
            ["repeated"] => Told::Repeated,
            ["nothing", why] => Told::Nothing { why: own(why) },
            ["trouble", code, hint, said] => {
                let (code, hint, words) = (own(code), own(hint), own(said));
                Told::Trouble { code, hint, words }
            }
            _ => return None,
        };
        Some(What::Told(told))
    }
}

impl Call {
    fn as_str(&self) -> &'static str {
        match self {
            Call::Create => "create",
            Call::Next => "next",
            Call::Submit { .. } => "submit",
            Call::Progress => "progress",
            Call::Review => "review",
            Call::Decide => "decide",
            Call::Modify => "modify",
        }
    }

    fn read(word: &str) -> Option<Self> {
        let all = [
            Call::Create,
            Call::Next,
            Call::Progress,
            Call::Review,
            Call::Decide,
            Call::Modify,
        ];
        all.into_iter().find(|call| call.as_str() == word)
    }
}

impl Hold {
    fn words(&self) -> Vec<String> {
        let Hold {
            step,
            attempt,
            token,
        } = self;
        words(&[&step.to_string(), &attempt.to_string(), token])
    }

    fn read(words: &[&str]) -> Option<Self> {
        let [step, attempt, token] = words else {
            return None;
        };
        Some(Self {
            step: step.parse().ok()?,
            attempt: attempt.parse().ok()?,
            token: (*token).to_owned(),
        })
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
