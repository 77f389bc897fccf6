//! Export of a plan to a file in parts, so that memory does not depend on the size of the plan.
//!
//! The document has the same content as that of [`Engine::export`]. All parts come from one
//! transaction. A client reads the file later: a slow one holds no connection to the database.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write};
use std::sync::Arc;

use onward_core::PlanId;
use onward_core::role::Permission;
use onward_store::{
    Artifacts, AuditTrail, Extractions, Hint, Outputs, Plans, Skills, Tx, Usages, UserFeedback,
};
use serde_json::{Value, json};

use super::{FORMAT, MAX_OBJECTS, VERSION, attachments, branch, event, head, step};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Error;

/// Rows of a page. A row has up to two texts of one MiB.
const ROWS: u32 = 2;
/// Events of a page, and their bytes.
const EVENTS: u32 = 1_000;
const EVENT_BYTES: u64 = 128 * 1024;

/// A file for an export.
pub trait ExportTarget: Send + Sync {
    /// Discards what was written, because the export starts again.
    fn restart(&self) -> io::Result<()>;

    /// Appends bytes.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;
}

impl ExportTarget for File {
    fn restart(&self) -> io::Result<()> {
        let mut at_start = self;
        at_start.rewind()?;
        self.set_len(0)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }
}

/// The writer of a target.
struct Target<'t>(&'t dyn ExportTarget);

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Engine {
    /// Writes a plan as a JSON document to a file.
    pub async fn export_to(
        &self,
        caller: &Caller,
        plan: PlanId,
        file: Arc<dyn ExportTarget>,
    ) -> Result<(), Error> {
        caller.allow(Permission::Read)?;
        let exported_at = self.now().to_string();
        let written = self.store.read(&caller.tenant, move |tx| {
            let (file, exported_at) = (Arc::clone(&file), exported_at.clone());
            Box::pin(async move {
                let start = json!({
                    "format": FORMAT, "version": VERSION, "exportedAt": exported_at,
                });
                let mut document = Document::start(&*file, &start)?;
                document.write_plan(tx, plan).await?;
                document.end()
            })
        });
        written.await
    }
}

/// A JSON object that is written field by field.
struct Document<'t> {
    out: BufWriter<Target<'t>>,
    /// Whether the current list has no items yet.
    is_empty: bool,
}

impl<'t> Document<'t> {
    fn start(file: &'t dyn ExportTarget, fields: &Value) -> Result<Self, Error> {
        // The work of a transaction can run again.
        file.restart().map_err(cannot_write)?;
        let mut document = Self {
            out: BufWriter::new(Target(file)),
            is_empty: true,
        };
        let fields = fields.to_string();
        document.text(fields.trim_end_matches('}'))?;
        Ok(document)
    }

    async fn write_plan(&mut self, tx: &mut Tx, plan: PlanId) -> Result<(), Error> {
        let sheet = Plans(tx).sheet(plan).await?;
        let sheet = sheet.ok_or_else(|| Error::PlanNotFound(plan.to_string()))?;
        self.text(&format!(",\"plan\":{}", head(&sheet)))?;
        self.start_list("steps")?;
        let mut behind = 0;
        loop {
            let page = Plans(tx).steps_page(plan, behind, ROWS).await?;
            let Some(last) = page.last() else { break };
            behind = last.order;
            self.items(page.iter().map(step))?;
        }
        self.end_list()?;
        self.start_list("branches")?;
        self.items(Plans(tx).branches_of(plan).await?.iter().map(branch))?;
        self.end_list()?;
        self.start_list("events")?;
        let mut behind = 0;
        loop {
            let mut trail = AuditTrail(tx);
            let page = trail.trail_page(plan, behind, EVENTS, EVENT_BYTES).await?;
            let Some(last) = page.last() else { break };
            behind = last.seq;
            self.items(page.iter().map(event))?;
        }
        self.end_list()?;
        self.write_attachments(tx, plan).await
    }

    async fn write_attachments(&mut self, tx: &mut Tx, plan: PlanId) -> Result<(), Error> {
        let offsets = || (0..MAX_OBJECTS).step_by(usize::try_from(ROWS).unwrap_or(1));
        self.start_list("artifacts")?;
        for offset in offsets() {
            let page = Artifacts(tx).artifacts_of(plan, ROWS, offset).await?;
            if page.is_empty() {
                break;
            }
            self.items(page.iter().map(attachments::artifact))?;
        }
        self.end_list()?;
        self.start_list("extractions")?;
        for offset in offsets() {
            let page = Extractions(tx).extractions_of(plan, ROWS, offset).await?;
            if page.is_empty() {
                break;
            }
            self.items(page.iter().map(attachments::extraction))?;
        }
        self.end_list()?;
        self.start_list("outputs")?;
        for offset in offsets() {
            let page = Outputs(tx).outputs_of(plan, ROWS, offset).await?;
            if page.is_empty() {
                break;
            }
            self.items(page.iter().map(attachments::output))?;
        }
        self.end_list()?;
        self.start_list("skillExecutions")?;
        let skills = Skills(tx).skills_of(plan, MAX_OBJECTS).await?;
        self.items(skills.iter().map(attachments::skill))?;
        self.end_list()?;
        self.start_list("feedback")?;
        let feedback = UserFeedback(tx).feedback_of(plan, MAX_OBJECTS).await?;
        self.items(feedback.iter().map(attachments::feedback))?;
        self.end_list()?;
        self.start_list("tokens")?;
        let tokens = Usages(tx).of_steps(plan).await?;
        self.items(tokens.iter().map(attachments::tokens))?;
        self.end_list()
    }

    fn start_list(&mut self, name: &str) -> Result<(), Error> {
        self.is_empty = true;
        self.text(&format!(",\"{name}\":["))
    }

    fn items(&mut self, values: impl Iterator<Item = Value>) -> Result<(), Error> {
        for value in values {
            if !self.is_empty {
                self.text(",")?;
            }
            self.is_empty = false;
            serde_json::to_writer(&mut self.out, &value)
                .map_err(|error| cannot_write(error.into()))?;
        }
        Ok(())
    }

    fn end_list(&mut self) -> Result<(), Error> {
        self.text("]")
    }

    fn end(mut self) -> Result<(), Error> {
        self.text("}")?;
        self.out.flush().map_err(cannot_write)
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.out.write_all(text.as_bytes()).map_err(cannot_write)
    }
}

fn cannot_write(error: io::Error) -> Error {
    Error::Conflict {
        message: format!("cannot write the export: {error}"),
        hint: Hint::for_operator(
            "check the free space of the temporary directory, or run `onward export` on the server",
        ),
    }
}
