//! `/assets`: stylesheet, script and icon of the dashboard, embedded in the binary and served with
//! an `ETag`.

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

/// One `ETag` for all assets, because they change with the binary.
static ASSETS_ETAG: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in &ASSETS {
        digest.update(asset.text.as_bytes());
    }
    let digest = digest.finalize();
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    format!("\"{}\"", hex.collect::<String>())
});

pub(super) async fn show(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Problem::route_not_found(&format!("/assets/{name}")).into_response();
    };
    let caching = [(ETAG, ASSETS_ETAG.as_str()), (CACHE_CONTROL, "no-cache")];
    let if_none_match = headers.get(IF_NONE_MATCH);
    if if_none_match.is_some_and(|etag| etag.as_bytes() == ASSETS_ETAG.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(CONTENT_TYPE, asset.kind)], asset.text).into_response()
}
