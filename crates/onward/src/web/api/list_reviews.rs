//! `list_reviews`: what waits for a person, the longest waiting first.

use onward_engine::Caller;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Desk, Hints, Refused, Spec};
use crate::wire::review::Review;

/// How many are shown where nobody says how many.
const SHOWN: u32 = 100;

pub(super) struct ListReviews;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// 100 without it
    #[schemars(range(min = 1, max = 500))]
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Reviews {
    reviews: Vec<Review>,
}

impl Spec for ListReviews {
    type Input = Input;
    type Output = Reviews;

    const NAME: &'static str = "list_reviews";
    const TITLE: &'static str = "List open reviews";
    const DESCRIPTION: &'static str =
        "What waits for a person's decision, the longest waiting first.";
    const HINTS: Hints = Hints::READS;
    const IN_CORE: bool = false;

    async fn run(desk: &Desk, caller: &Caller, input: Input) -> Result<Reviews, Refused> {
        let limit = input.limit.unwrap_or(SHOWN);
        let open = desk.engine.open_reviews(caller, limit).await?;
        let mut reviews = Vec::new();
        for review in &open {
            let sheet = desk.engine.sheet(caller, review.plan).await?;
            reviews.push(Review::listed(review, &sheet.brief.name));
        }
        Ok(Reviews { reviews })
    }
}
