//! `list_reviews`: pending reviews, oldest first.

use onward_core::policy::MAX_NAME;
use onward_engine::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Hints, Spec, ToolContext, ToolError};
use crate::wire::review::Review;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 500;

pub(super) struct ListReviews;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// Default: 100
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: Option<u32>,
    /// Only reviews that are assigned to this member
    #[schemars(length(min = 1, max = MAX_NAME))]
    assignee: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reviews {
    reviews: Vec<Review>,
}

impl Spec for ListReviews {
    type Input = Input;
    type Output = Reviews;

    const NAME: &'static str = "list_reviews";
    const TITLE: &'static str = "List pending reviews";
    const DESCRIPTION: &'static str = "Pending reviews, oldest first.";
    const HINTS: Hints = Hints::READ_ONLY;

    async fn run(
        context: &ToolContext,
        caller: &Caller,
        input: Input,
    ) -> Result<Reviews, ToolError> {
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT);
        let mut open = context.engine.open_reviews(caller, MAX_LIMIT).await?;
        if let Some(assignee) = &input.assignee {
            open.retain(|open| open.is_assigned_to(assignee));
        }
        open.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let mut reviews = Vec::new();
        for review in &open {
            let sheet = context.engine.sheet(caller, review.plan).await?;
            reviews.push(Review::list_entry(review, &sheet.brief.name));
        }
        Ok(Reviews { reviews })
    }
}
