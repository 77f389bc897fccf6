//! The output of `onward transcript check` and `onward transcript repair`.

use serde::Serialize;

use crate::transcript::repair::Finding;

/// One defect of a transcript.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingLine<'a> {
    /// The file as given on the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line number in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The index in the list, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<usize>,
    what: &'static str,
    /// Whether it breaks the session or is only cosmetic.
    wrong: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    /// Why a call counts as interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// A description in prose.
    says: String,
}

/// The result of a repair.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepairedFile<'a> {
    pub(crate) file: &'a str,
    /// The path of the repaired transcript, unless nothing had to be repaired.
    pub(crate) written: Option<String>,
    /// The path of the original, if it was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<String>,
    pub(crate) repairs: Vec<FindingLine<'a>>,
    /// Calls without a result that may still get one.
    pub(crate) open_calls: usize,
}

impl<'a> FindingLine<'a> {
    pub(crate) fn new(finding: &'a Finding, file: Option<&'a str>) -> Self {
        let repair = &finding.repair;
        Self {
            file,
            line: finding.line,
            row: finding.row,
            what: repair.kind.as_str(),
            wrong: repair.kind.is_error(),
            call_id: repair.call.as_deref(),
            tool: repair.tool.as_deref(),
            cause: repair.kind.cause().map(|cause| cause.as_str()),
            says: repair.message(),
        }
    }
}
