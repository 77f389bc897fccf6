//! The icon of the server and its tools, as a data URI: a client needs no network to show it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::Icon;

const SVG: &[u8] = include_bytes!("../../assets/onward.svg");

static URI: LazyLock<String> =
    LazyLock::new(|| format!("data:image/svg+xml;base64,{}", STANDARD.encode(SVG)));

pub(crate) fn icons() -> Vec<Icon> {
    vec![
        Icon::new(URI.as_str())
            .with_mime_type("image/svg+xml")
            .with_sizes(vec!["any".to_owned()]),
    ]
}
