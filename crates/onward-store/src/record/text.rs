//! Pages of stored texts. The database cuts the page, so a long text is not loaded.

use onward_core::id::{ArtifactId, OutputId};

use crate::error::Error;
use crate::query::Query;
use crate::tx::Tx;
use crate::value::{Row, first, params};

/// An artifact or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextId {
    /// An artifact.
    Artifact(ArtifactId),
    /// One version of an output.
    Output(OutputId),
}

/// A page of a stored text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPage {
    /// Title of the artifact or output.
    pub title: String,
    /// The characters of the page. Empty after the end of the text.
    pub content: String,
    /// Number of characters of the whole text.
    pub total_chars: u32,
}

/// Stored texts.
pub struct Texts<'t>(pub &'t mut Tx);

impl Texts<'_> {
    /// At most `limit` characters of a text, after the first `offset` ones.
    pub async fn page(
        &mut self,
        id: TextId,
        offset: u32,
        limit: u32,
    ) -> Result<Option<TextPage>, Error> {
        let (query, table, id) = match id {
            TextId::Artifact(id) => (Query::ArtifactText, "artifacts", *id.as_uuid()),
            TextId::Output(id) => (Query::OutputText, "outputs", *id.as_uuid()),
        };
        let position = offset.saturating_add(1);
        let rows = self.0.rows(query, params![id, position, limit]).await?;
        first(Some(rows), |row| page(row, table))
    }
}

fn page(row: Row, table: &'static str) -> Result<TextPage, Error> {
    let mut cells = row.cells(table);
    Ok(TextPage {
        title: cells.string("title")?,
        content: cells.string("content")?,
        total_chars: cells.u32("characters")?,
    })
}
