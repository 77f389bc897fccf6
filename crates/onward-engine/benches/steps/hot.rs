//! Share of updates that PostgreSQL performs in place (HOT): they write to no index.

/// Updates of a table since its creation, and how many of them were HOT.
#[derive(Clone)]
pub(crate) struct Updates {
    table: String,
    all: i64,
    hot: i64,
}

/// The updates of the tables that a step changes. Statistics of the last second may be missing.
pub(crate) async fn updates(url: &str) -> Vec<Updates> {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("connected");
    tokio::spawn(connection);
    let query = "SELECT relname::text, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables \
        WHERE relname IN ('plans', 'steps', 'due') AND schemaname = current_schema() \
        ORDER BY relname";
    let rows = client.query(query, &[]).await.expect("statistics read");
    let updates = rows.iter().map(|row| Updates {
        table: row.get(0),
        all: row.get(1),
        hot: row.get(2),
    });
    updates.collect()
}

/// Prints the share of HOT updates between two readings.
pub(crate) fn print_share(before: &[Updates], after: &[Updates]) {
    let shares = after.iter().map(|after| {
        let before = before.iter().find(|before| before.table == after.table);
        let (all, hot) = before.map_or((0, 0), |before| (before.all, before.hot));
        let (all, hot) = (after.all - all, after.hot - hot);
        let share = if all == 0 { 0 } else { 100 * hot / all };
        format!("{} {share} % of {all}", after.table)
    });
    println!(
        "{:<30} {}",
        "  HOT updates",
        shares.collect::<Vec<_>>().join(", ")
    );
}
