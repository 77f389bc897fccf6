//! `/assets`: the one stylesheet, the one script and the icon of the dashboard. They are in the binary;
//! a browser asks again and is told that nothing changed.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::web::problem::Problem;

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

static ASSETS: [Asset; 3] = [
    Asset {
        name: "onward.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../../../assets/onward.css"),
    },
    Asset {
        name: "onward.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../../assets/onward.js"),
    },
    Asset {
        name: "onward.svg",
        kind: "image/svg+xml",
        text: include_str!("../../../assets/onward.svg"),
    },
];

/// One mark for all of them: they change together, with the binary.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in &ASSETS {
        digest.update(asset.text.as_bytes());
    }
    let digest = digest.finalize();
    let mark = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    format!("\"{}\"", mark.collect::<String>())
});

pub(super) async fn show(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Problem::nowhere(&format!("/assets/{name}")).into_response();
    };
    let kept = [(ETAG, MARK.as_str()), (CACHE_CONTROL, "no-cache")];
    let known = headers.get(IF_NONE_MATCH);
    if known.is_some_and(|known| known.as_bytes() == MARK.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, kept).into_response();
    }
    (kept, [(CONTENT_TYPE, asset.kind)], asset.text).into_response()
}
