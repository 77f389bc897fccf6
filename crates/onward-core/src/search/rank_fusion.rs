//! Reciprocal rank fusion of a full-text ranking and a semantic ranking, with equal weights. Only
//! ranks count, so the scores of the two rankings need no common scale.

use std::collections::BTreeMap;

/// The constant of reciprocal rank fusion. A larger value reduces the weight of the first ranks.
pub const RRF_K: f64 = 60.0;

/// An item with its ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusedRank<T> {
    /// The item.
    pub item: T,
    /// The rank in the full-text ranking, from 1.
    pub keyword_rank: Option<u32>,
    /// The rank in the semantic ranking, from 1.
    pub semantic_rank: Option<u32>,
    /// The sum of `1 / (RRF_K + rank)` over both rankings.
    pub score: f64,
}

/// Fuses two rankings, best first. A duplicate counts with its first rank. Ties are broken by
/// full-text rank, then by item.
pub fn fuse_ranks<T: Copy + Ord>(keyword: &[T], semantic: &[T]) -> Vec<FusedRank<T>> {
    let mut ranks: BTreeMap<T, (Option<u32>, Option<u32>)> = BTreeMap::new();
    for (item, rank) in keyword.iter().zip(1u32..) {
        ranks.entry(*item).or_default().0.get_or_insert(rank);
    }
    for (item, rank) in semantic.iter().zip(1u32..) {
        ranks.entry(*item).or_default().1.get_or_insert(rank);
    }
    let part = |rank: Option<u32>| rank.map_or(0.0, |rank| 1.0 / (RRF_K + f64::from(rank)));
    let mut fused: Vec<FusedRank<T>> = ranks
        .into_iter()
        .map(|(item, (keyword_rank, semantic_rank))| FusedRank {
            item,
            keyword_rank,
            semantic_rank,
            score: part(keyword_rank) + part(semantic_rank),
        })
        .collect();
    let by_keyword = |fused: &FusedRank<T>| fused.keyword_rank.unwrap_or(u32::MAX);
    // Stable: equal items keep the order of the map.
    fused.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score.then(by_keyword(one).cmp(&by_keyword(other)))
    });
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(fused: &[FusedRank<char>]) -> String {
        fused.iter().map(|fused| fused.item).collect()
    }

    #[test]
    fn ranks_items_in_both_rankings_first() {
        let fused = fuse_ranks(&['a', 'b', 'c'], &['d', 'c', 'e']);
        assert_eq!(items(&fused), "cadbe");
        let both = &fused[0];
        assert_eq!((both.keyword_rank, both.semantic_rank), (Some(3), Some(2)));
        assert!((both.score - (1.0 / 63.0 + 1.0 / 62.0)).abs() < 1e-12);
        assert!((fused[1].score - 1.0 / 61.0).abs() < 1e-12);
        assert_eq!(fused[1].semantic_rank, None);
    }

    #[test]
    fn both_rankings_have_equal_weight() {
        let one = fuse_ranks(&['a', 'b'], &['b', 'c']);
        let other = fuse_ranks(&['b', 'c'], &['a', 'b']);
        let score = |fused: &[FusedRank<char>], item| {
            let found = fused.iter().find(|fused| fused.item == item);
            found.map(|found| found.score)
        };
        for item in ['a', 'b', 'c'] {
            assert_eq!(score(&one, item), score(&other, item), "{item}");
        }
    }

    #[test]
    fn keeps_the_order_of_a_single_ranking() {
        assert_eq!(items(&fuse_ranks(&['z', 'a', 'm'], &[])), "zam");
        assert_eq!(items(&fuse_ranks(&[], &['z', 'a', 'm'])), "zam");
        assert_eq!(items(&fuse_ranks::<char>(&[], &[])), "");
    }

    #[test]
    fn a_duplicate_counts_with_its_first_rank() {
        let fused = fuse_ranks(&['a', 'a', 'b'], &[]);
        assert_eq!(items(&fused), "ab");
        assert_eq!(fused[0].keyword_rank, Some(1));
        assert_eq!(fused[1].keyword_rank, Some(3));
    }
}
