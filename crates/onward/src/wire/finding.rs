//! What is wrong with a saved session, and what was done about it.

use serde::Serialize;

use crate::transcript::repair::Finding;

/// One thing that is wrong.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FindingLine<'a> {
    /// The file, as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The row of the list, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<usize>,
    what: &'static str,
    /// Whether the session is broken by it, or merely untidy.
    wrong: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    /// Why a call is given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// The same in words.
    says: String,
}

/// What a repair did.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepairedFile<'a> {
    pub(crate) file: &'a str,
    /// Where the repaired session is; none where there was nothing to repair.
    pub(crate) written: Option<String>,
    /// Where the old one is kept, if its place was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<String>,
    pub(crate) repairs: Vec<FindingLine<'a>>,
    /// Calls that have no result and may still get one.
    pub(crate) open_calls: usize,
}

impl<'a> FindingLine<'a> {
    pub(crate) fn of(finding: &'a Finding, file: Option<&'a str>) -> Self {
        let repair = &finding.repair;
        Self {
            file,
            line: finding.line,
            row: finding.row,
            what: repair.what.as_str(),
            wrong: repair.what.is_wrong(),
            call_id: repair.call.as_deref(),
            tool: repair.tool.as_deref(),
            cause: repair.what.cause().map(|cause| cause.as_str()),
            says: repair.says(),
        }
    }
}
