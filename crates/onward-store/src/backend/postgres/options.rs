//! Options of an address that the driver does not support.

/// Removes the options for which `take` returns true, given their name and value, from an address.
pub(super) fn take_options(url: &str, mut take: impl FnMut(&str, &str) -> bool) -> String {
    let Some((place, options)) = url.split_once('?') else {
        return url.to_owned();
    };
    let mut is_taken = |option: &str| {
        let option = option.split_once('=');
        option.is_some_and(|(name, value)| take(name, value))
    };
    let options = options.split('&');
    let others: Vec<&str> = options.filter(|option| !is_taken(option)).collect();
    if others.is_empty() {
        place.to_owned()
    } else {
        format!("{place}?{}", others.join("&"))
    }
}
