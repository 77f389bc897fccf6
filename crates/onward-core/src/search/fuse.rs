//! Two rankings made into one: by reciprocal rank, with equal weights. What a ranking's own numbers
//! mean does not matter, so words and meaning need no common measure.

use std::collections::BTreeMap;

/// The constant of reciprocal rank fusion: how little the first places count more than the next.
pub const K: f64 = 60.0;

/// Something that was ranked, with its places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused<T> {
    /// What.
    pub item: T,
    /// Its place by words, from 1.
    pub keyword_rank: Option<u32>,
    /// Its place by meaning, from 1.
    pub semantic_rank: Option<u32>,
    /// The sum of `1 / (K + rank)` over both.
    pub score: f64,
}

/// Both rankings as one, the best first. What is named twice in one of them counts by its first place.
/// Of those that score the same, the one that words found comes first, then the smaller one.
pub fn fuse<T: Copy + Ord>(keyword: &[T], semantic: &[T]) -> Vec<Fused<T>> {
    let mut ranks: BTreeMap<T, (Option<u32>, Option<u32>)> = BTreeMap::new();
    for (item, rank) in keyword.iter().zip(1u32..) {
        ranks.entry(*item).or_default().0.get_or_insert(rank);
    }
    for (item, rank) in semantic.iter().zip(1u32..) {
        ranks.entry(*item).or_default().1.get_or_insert(rank);
    }
    let part = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (K + f64::from(rank)));
    let mut fused: Vec<Fused<T>> = ranks
        .into_iter()
        .map(|(item, (keyword_rank, semantic_rank))| Fused {
            item,
            keyword_rank,
            semantic_rank,
            score: part(keyword_rank) + part(semantic_rank),
        })
        .collect();
    let by_words = |fused: &Fused<T>| fused.keyword_rank.unwrap_or(u32::MAX);
    // Stable: those that are alike stay in the order of the map.
    fused.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(by_words(one).cmp(&by_words(other)))
    });
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(fused: &[Fused<char>]) -> String {
        fused.iter().map(|fused| fused.item).collect()
    }

    #[test]
    fn what_both_find_comes_before_what_one_finds() {
        let fused = fuse(&['a', 'b', 'c'], &['d', 'c', 'e']);
        assert_eq!(items(&fused), "cadbe");
        let both = &fused[0];
        assert_eq!((both.keyword_rank, both.semantic_rank), (Some(3), Some(2)));
        assert!((both.score - (1.0 / 63.0 + 1.0 / 62.0)).abs() < 1e-12);
        assert!((fused[1].score - 1.0 / 61.0).abs() < 1e-12);
        assert_eq!(fused[1].semantic_rank, None);
    }

    #[test]
    fn both_count_the_same() {
        let one = fuse(&['a', 'b'], &['b', 'c']);
        let other = fuse(&['b', 'c'], &['a', 'b']);
        let score = |fused: &[Fused<char>], item| {
            let found = fused.iter().find(|fused| fused.item == item);
            found.map(|found| found.score)
        };
        for item in ['a', 'b', 'c'] {
            assert_eq!(score(&one, item), score(&other, item), "{item}");
        }
    }

    #[test]
    fn one_ranking_alone_stays_as_it_is() {
        assert_eq!(items(&fuse(&['z', 'a', 'm'], &[])), "zam");
        assert_eq!(items(&fuse(&[], &['z', 'a', 'm'])), "zam");
        assert_eq!(items(&fuse::<char>(&[], &[])), "");
    }

    #[test]
    fn what_is_named_twice_counts_by_its_first_place() {
        let fused = fuse(&['a', 'a', 'b'], &[]);
        assert_eq!(items(&fused), "ab");
        assert_eq!(fused[0].keyword_rank, Some(1));
        assert_eq!(fused[1].keyword_rank, Some(3));
    }
}
