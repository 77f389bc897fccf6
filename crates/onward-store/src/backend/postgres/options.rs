//! Options of an address that the driver does not support.

/// Removes every option for which `take` returns true from the query of an address. `take` receives
/// the name and the value.
pub(super) fn take_options(url: &str, mut take: impl FnMut(&str, &str) -> bool) -> String {
    let Some((base, options)) = url.split_once('?') else {
        return url.to_owned();
    };
    let mut is_taken = |option: &str| {
        let option = option.split_once('=');
        option.is_some_and(|(name, value)| take(name, value))
    };
    let options = options.split('&');
    let others: Vec<&str> = options.filter(|option| !is_taken(option)).collect();
    if others.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", others.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_the_accepted_options() {
        for (url, rest, taken) in [
            ("postgres://db/a", "postgres://db/a", vec![]),
            ("postgres://db/a?x=1", "postgres://db/a", vec!["1"]),
            (
                "postgres://db/a?x=1&y=2&x=3",
                "postgres://db/a?y=2",
                vec!["1", "3"],
            ),
            ("postgres://db/a?x&y=", "postgres://db/a?x&y=", vec![]),
        ] {
            let mut values = Vec::new();
            let left = take_options(url, |name, value| {
                let is_x = name == "x";
                if is_x {
                    values.push(value.to_owned());
                }
                is_x
            });
            assert_eq!(
                (left.as_str(), values),
                (rest, taken.iter().map(|one| (*one).to_owned()).collect())
            );
        }
    }
}
