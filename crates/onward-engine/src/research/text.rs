//! Reads a stored text in pages: an artifact, including a kept result, or an output.

use onward_core::policy::MAX_CONTENT_BYTES;
use onward_core::role::Permission;
use onward_store::{TextId, TextPage, Texts};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, ObjectKind};

impl Engine {
    /// At most `limit` characters of a text, after the first `offset` ones.
    pub async fn read_text(
        &self,
        caller: &Caller,
        id: TextId,
        offset: u32,
        limit: u32,
    ) -> Result<TextPage, Error> {
        caller.allow(Permission::Read)?;
        // No text has more characters, and some databases reject larger numbers.
        let longest = u32::try_from(MAX_CONTENT_BYTES).unwrap_or(u32::MAX);
        let (offset, limit) = (offset.min(longest), limit.min(longest));
        let page = self.store.read(&caller.tenant, move |tx| {
            Box::pin(async move { Texts(tx).page(id, offset, limit).await })
        });
        page.await?.ok_or_else(|| match id {
            TextId::Artifact(id) => not_found(ObjectKind::Artifact, id.to_string()),
            TextId::Output(id) => not_found(ObjectKind::Output, id.to_string()),
        })
    }
}

fn not_found(kind: ObjectKind, name: String) -> Error {
    Error::NotFound { kind, name }
}
