//! The SQL texts of messages.

use super::*;

fn merged_text(statements: &[(Query, Expect)]) -> String {
    merged(statements, Form::Single, OnLostRace::Fail)
}

#[test]
fn wraps_a_statement_that_must_affect_some_rows() {
    let text = "UPDATE t SET a = $2 WHERE b = $10";
    assert_eq!(
        checked(Query::Text(text), text, Expect::Rows(3)),
        "WITH change AS (UPDATE t SET a = $2 WHERE b = $10 RETURNING 1) SELECT CASE (SELECT \
             count(*) FROM change) WHEN 3 THEN 0 ELSE onward_wrong_count('UPDATE t SET a = $2 WHERE \
             b = $10', (SELECT count(*) FROM change), 3) END"
    );
}

#[test]
fn merged_changes_share_the_tenant_and_keep_their_other_parameters() {
    let run = [
        (Query::DueClear, Expect::Any),
        (Query::DueSet, Expect::Rows(1)),
    ];
    assert_eq!(
        merged_text(&run),
        "WITH c0 AS (DELETE FROM due USING (VALUES (CAST($2 AS uuid))) AS new (plan_id) WHERE \
             due.tenant_id = $1 AND due.plan_id = new.plan_id AND new.plan_id = least(new.plan_id)), \
             c1 AS (INSERT INTO due (tenant_id, plan_id, at) SELECT $1, new.plan_id, new.at FROM \
             (VALUES (CAST($3 AS uuid), CAST($4 AS bigint))) AS new (plan_id, at) WHERE new.plan_id \
             IS NOT NULL ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at RETURNING 1) \
             SELECT CASE WHEN EXISTS (SELECT FROM c1) THEN 0 ELSE onward_wrong_count('due_set', NULL, \
             1) END"
    );
    let statements = [
        Statement::without_tenant(Query::DueClear, vec![Value::Int(1), Value::Int(2)]),
        Statement::without_tenant(
            Query::DueSet,
            vec![Value::Int(1), Value::Int(3), Value::Int(4)],
        ),
    ];
    let sent: Vec<&Value> = parameters(&statements.each_ref(), false).collect();
    assert_eq!(sent, [1, 2, 3, 4].map(Value::Int).each_ref());
}

#[test]
fn merges_rows_of_one_table_into_one_change() {
    for (query, expect) in [
        (Query::EventInsert, Expect::Any),
        (Query::StepUpdate, Expect::Rows(1)),
    ] {
        for form in [Form::Single, Form::Distributed] {
            let text = merged(&[(query, expect); 3], form, OnLostRace::Fail);
            assert!(!text.contains("c1 AS"), "{text}");
            let columns = query.row_change().unwrap().columns.len();
            let last = format!("${}", 1 + 3 * columns);
            let too_many = format!("${}", 2 + 3 * columns);
            assert!(text.contains(&last) && !text.contains(&too_many), "{text}");
            let counted = expect != Expect::Any;
            assert_eq!(text.contains("FROM c0) = 3 THEN"), counted, "{text}");
        }
    }
}

#[test]
fn inserts_rows_without_a_query_in_a_distributed_database() {
    let run = [(Query::DueSooner, Expect::Any); 2];
    assert_eq!(
        merged(&run, Form::Distributed, OnLostRace::Fail),
        "INSERT INTO due (tenant_id, plan_id, at) VALUES ($1, $2, $3), ($1, $4, $5) \
             ON CONFLICT (tenant_id, plan_id) DO UPDATE SET at = excluded.at WHERE excluded.at < due.at"
    );
    let statement =
        Statement::without_tenant(Query::DueSooner, [0, 1, 2, 3].map(Value::Int).into());
    let sent: Vec<&Value> = parameters(&[&statement, &statement], true).collect();
    assert_eq!(sent, [0, 1, 2, 1, 2].map(Value::Int).each_ref());
}

#[test]
fn checks_a_version_before_other_changes_in_a_distributed_database() {
    let version = Statement::without_tenant(Query::PlanMove, vec![]).checking_version();
    let event = Statement::without_tenant(Query::EventInsert, vec![]);
    let run = [&version, &event, &event, &version];
    assert_eq!(mergeable(&run, true), 1);
    assert_eq!(mergeable(&run[1..], true), 2);
    assert_eq!(mergeable(&run[..3], false), 3);
}

#[test]
fn a_distributed_database_gets_plain_statements_after_a_version_check() {
    let version = Statement::without_tenant(Query::PlanMove, vec![]).checking_version();
    let step = Statement::without_tenant(Query::StepAdvance, vec![]).expecting(1);
    let event = Statement::without_tenant(Query::EventInsert, vec![]);
    let run = [&step, &event];
    assert_eq!(mergeable(&run, true), 1, "rows of several tables");
    assert_eq!(mergeable(&run, false), 2);
    let text = |form| {
        let text = MessageText::new(&[&step], form, OnLostRace::Fail).unwrap();
        text.sql.split_whitespace().next().unwrap().to_owned()
    };
    let first = Form::new(true);
    assert_eq!(text(first.after(&[&event])), "WITH", "its count is checked");
    assert_eq!(text(first.after(&[&version])), "UPDATE");
    let one = |query, expect| merged(&[(query, expect)], first, OnLostRace::Fail);
    let clear = "DELETE FROM due WHERE due.tenant_id = $1 AND due.plan_id = CAST($2 AS uuid)";
    assert_eq!(one(Query::DueClear, Expect::Any), clear);
    let checked = one(Query::PlanMove, Expect::Version);
    assert!(
        checked.starts_with("WITH c0 AS (UPDATE plans SET "),
        "{checked}"
    );
    assert!(!checked.contains("VALUES"), "{checked}");
    assert_eq!(Form::new(false).after(&[&version]), Form::Single);
}

#[test]
fn checks_only_versions_after_a_version_check() {
    let text = merged_text(&[
        (Query::PlanMove, Expect::Version),
        (Query::StepAdvance, Expect::Rows(1)),
    ]);
    let check = "SELECT CASE WHEN EXISTS (SELECT FROM c0) THEN 0 ELSE onward_outdated";
    assert!(text.contains(check), "{text}");
    assert!(!text.contains("FROM c1"), "{text}");
}

#[test]
fn changes_that_lost_a_race_write_nothing() {
    let one = (Query::PlanNote, Expect::Version);
    let text = MessageText::render(&[one], Form::Single, OnLostRace::Skip).unwrap();
    assert!(text.returns_keys && text.sql.ends_with(" RETURNING 1::bigint"));
    let changes = |plans: usize, on_lost_race| {
        let each = [
            (Query::PlanMove, Expect::Version),
            (Query::StepAdvance, Expect::Rows(1)),
            (Query::EventInsert, Expect::Any),
            (Query::DueClear, Expect::Any),
        ];
        let all = each
            .into_iter()
            .flat_map(|one| std::iter::repeat_n(one, plans));
        merged(&all.collect::<Vec<_>>(), Form::Single, on_lost_race)
    };
    let text = changes(1, OnLostRace::Skip);
    assert_eq!(
        text.matches("AND EXISTS (SELECT FROM c0)").count(),
        3,
        "{text}"
    );
    assert!(text.ends_with("SELECT key FROM c0"), "{text}");
    let text = changes(2, OnLostRace::SkipLocked);
    let depends = |owner| {
        text.matches(&format!("AND {owner}.plan_id = ANY (ARRAY("))
            .count()
    };
    assert_eq!((depends("new"), depends("steps")), (3, 1), "{text}");
    assert!(text.contains("SKIP LOCKED"), "{text}");
    assert!(!text.contains("onward_"), "{text}");
}

#[test]
fn changes_a_row_once_per_statement() {
    let run = |queries: &[(Query, i64)]| {
        let statements = queries.iter().map(|(query, key)| {
            let key = match key {
                0 => Value::Null,
                key => Value::Int(*key),
            };
            Statement::without_tenant(*query, vec![Value::Int(0), key])
        });
        let statements: Vec<_> = statements.collect();
        mergeable(&statements.iter().collect::<Vec<_>>(), false)
    };
    let transition = [
        (Query::PlanMove, 1),
        (Query::StepUpdate, 2),
        (Query::StepUpdate, 3),
        (Query::EventInsert, 1),
        (Query::EventInsert, 1),
    ];
    assert_eq!(run(&transition), 5);
    let twice = [Query::PlanMove, Query::EventInsert, Query::PlanMove];
    assert_eq!(run(&twice.map(|query| (query, 1))), 2);
    let due = [Query::EventInsert, Query::DueSet, Query::DueSooner];
    assert_eq!(run(&due.map(|query| (query, 1))), 2);
    let odd = [
        Query::EventInsert,
        Query::StepsRestoreSign,
        Query::EventInsert,
    ];
    assert_eq!(run(&odd.map(|query| (query, 1))), 1);
    let odd = [Query::PlanTouch, Query::PlanMove];
    assert_eq!(run(&odd.map(|query| (query, 1))), 1);
    assert_eq!(run(&[(Query::EventInsert, 1); 10_000]), MOST_MERGED);
    let of_two = [
        (Query::PlanMove, 1),
        (Query::PlanMove, 2),
        (Query::DueClear, 0),
        (Query::DueClear, 0),
    ];
    assert_eq!(run(&of_two), 4);
}

#[test]
fn the_texts_of_many_combinations_take_a_limited_amount_of_memory() {
    let one = |query| Statement::without_tenant(query, vec![]);
    let statements = [
        one(Query::EventInsert),
        one(Query::StepUpdate),
        one(Query::DueSet),
        one(Query::DueClear),
    ];
    let combination = |number: usize| {
        let digits = (0..6).map(move |place| number >> (2 * place) & 3);
        digits.map(|digit| &statements[digit]).collect::<Vec<_>>()
    };
    for number in 0..4_096 {
        let text = MessageText::new(&combination(number), Form::Single, OnLostRace::Fail).unwrap();
        let again = MessageText::new(&combination(number), Form::Single, OnLostRace::Fail).unwrap();
        assert!(Arc::ptr_eq(&text, &again));
    }
    let known = TEXTS.read().unwrap();
    assert!(known.len() <= 2 * TEXT_CAPACITY, "{}", known.len());
}
