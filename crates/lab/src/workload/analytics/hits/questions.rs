//! The questions, in the order of ClickBench's.
//!
//! Where that one leaves the order of its answer open, ours is by the keys, so that answers can be compared; the rows that are skipped are fewer, so
//! that small tables answer too.

use super::ask::{Grouped, Key, Made, Order, Plain, Where};
use super::data::{Column, Number, Text};

/// Either kind.
pub enum Ask {
    Grouped(Grouped),
    Plain(Plain),
}

/// Names of all questions, in order.
pub const NAMES: [&str; 43] = [
    "h1-count",
    "h2-filter",
    "h3-sums",
    "h4-average",
    "h5-distinct-users",
    "h6-distinct-phrases",
    "h7-ends",
    "h8-group",
    "h9-users-by-region",
    "h10-region-figures",
    "h11-users-by-model",
    "h12-users-by-phone",
    "h13-phrases",
    "h14-users-by-phrase",
    "h15-phrases-by-engine",
    "h16-users",
    "h17-user-phrases",
    "h18-user-phrases-any",
    "h19-user-minutes",
    "h20-one-user",
    "h21-like",
    "h22-like-phrases",
    "h23-like-titles",
    "h24-like-rows",
    "h25-first-phrases",
    "h26-phrases-sorted",
    "h27-both-sorted",
    "h28-url-lengths",
    "h29-referer-hosts",
    "h30-ninety-sums",
    "h31-engine-clients",
    "h32-watch-clients",
    "h33-all-watch-clients",
    "h34-urls",
    "h35-urls-constant",
    "h36-client-sums",
    "h37-counter-urls",
    "h38-counter-titles",
    "h39-counter-links",
    "h40-counter-sources",
    "h41-counter-hashes",
    "h42-counter-windows",
    "h43-counter-minutes",
];

const LIMIT: usize = 10;
/// The counter that the last questions are about: the one with most rows.
const COUNTER: i64 = 0;
/// The hashes of the first page and of no referer.
const FIRST_URL: i64 = 3;
const NO_REFERER: i64 = 5;

/// All of them. `user` is one that is there, `days` are the first day and the last, and a group is large from `rows` on.
pub fn all(user: i64, days: (i64, i64), rows: u64) -> Vec<Ask> {
    use Column::{Number as N, Text as T};
    use Made::{Average, Count, Distinct, Sum};
    use Number::{
        AdvEngineId, ClientIp, CounterId, DontCountHits, EventDate, EventTime, IsDownload, IsLink, IsRefresh,
        MobilePhone, RefererHash, RegionId, ResolutionWidth, SearchEngineId, TraficSourceId, UrlHash, UserId, WatchId,
        WindowClientHeight, WindowClientWidth,
    };
    use Text::{MobilePhoneModel, Referer, SearchPhrase, Title, Url};
    let large = (rows / 2_000) as i64;
    let whole = |conditions: &[Where], made: &[Made]| Grouped {
        conditions: conditions.to_vec(),
        keys: vec![],
        made: made.to_vec(),
        more_than: None,
        order: Order::Keys,
        skip: 0,
        limit: LIMIT,
    };
    // The largest groups by the first figure.
    let top = |conditions: &[Where], keys: &[Key], made: &[Made]| Grouped {
        keys: keys.to_vec(),
        order: Order::Largest(0),
        ..whole(conditions, made)
    };
    let first = |conditions: &[Where], columns: &[Column], order: &[Column]| {
        Ask::Plain(Plain {
            conditions: conditions.to_vec(),
            columns: Some(columns.to_vec()),
            order: order.to_vec(),
            limit: LIMIT,
        })
    };
    let later = |ask: Grouped, skip| Ask::Grouped(Grouped { skip, ..ask });
    let number = |number| Key::Column(N(number));
    let text = |text| Key::Column(T(text));
    let searched = || Where::Some(SearchPhrase);
    let google = || Where::Has(Url, "google");
    let users = Distinct(N(UserId));
    let figures = [Count, Sum(IsRefresh), Average(ResolutionWidth)];
    let counter = |more: &[Where]| {
        let mut all = vec![Where::Is(CounterId, COUNTER), Where::Between(EventDate, days.0, days.1)];
        all.push(Where::Is(IsRefresh, 0));
        all.extend_from_slice(more);
        all
    };
    let counted = || Where::Is(DontCountHits, 0);
    let less: Vec<Key> = (0..4).map(|by| Key::Less(ClientIp, by)).collect();
    let source = [
        number(TraficSourceId),
        number(SearchEngineId),
        number(AdvEngineId),
        Key::Where([SearchEngineId, AdvEngineId], Referer),
        text(Url),
    ];
    let of = Ask::Grouped;
    vec![
        of(whole(&[], &[Count])),
        of(whole(&[Where::IsNot(AdvEngineId, 0)], &[Count])),
        of(whole(&[], &[Sum(AdvEngineId), Count, Average(ResolutionWidth)])),
        of(whole(&[], &[Average(UserId)])),
        of(whole(&[], &[users])),
        of(whole(&[], &[Distinct(T(SearchPhrase))])),
        of(whole(&[], &[Made::Min(N(EventDate)), Made::Max(N(EventDate))])),
        of(top(&[Where::IsNot(AdvEngineId, 0)], &[number(AdvEngineId)], &[Count])),
        of(top(&[], &[number(RegionId)], &[users])),
        of(top(
            &[],
            &[number(RegionId)],
            &[Count, Sum(AdvEngineId), Average(ResolutionWidth), users],
        )),
        of(top(
            &[Where::Some(MobilePhoneModel)],
            &[text(MobilePhoneModel)],
            &[users],
        )),
        of(top(
            &[Where::Some(MobilePhoneModel)],
            &[number(MobilePhone), text(MobilePhoneModel)],
            &[users],
        )),
        of(top(&[searched()], &[text(SearchPhrase)], &[Count])),
        of(top(&[searched()], &[text(SearchPhrase)], &[users])),
        of(top(
            &[searched()],
            &[number(SearchEngineId), text(SearchPhrase)],
            &[Count],
        )),
        of(top(&[], &[number(UserId)], &[Count])),
        of(top(&[], &[number(UserId), text(SearchPhrase)], &[Count])),
        of(Grouped {
            order: Order::Keys,
            ..top(&[], &[number(UserId), text(SearchPhrase)], &[Count])
        }),
        of(top(
            &[],
            &[number(UserId), Key::MinuteOfHour(EventTime), text(SearchPhrase)],
            &[Count],
        )),
        first(&[Where::Is(UserId, user)], &[N(UserId)], &[]),
        of(whole(&[google()], &[Count])),
        of(top(
            &[google(), searched()],
            &[text(SearchPhrase)],
            &[Count, Made::Min(T(Url))],
        )),
        of(top(
            &[Where::Has(Title, "google"), Where::HasNot(Url, ".google."), searched()],
            &[text(SearchPhrase)],
            &[Count, Made::Min(T(Url)), Made::Min(T(Title)), users],
        )),
        Ask::Plain(Plain {
            conditions: vec![google()],
            columns: None,
            order: vec![N(EventTime)],
            limit: LIMIT,
        }),
        first(&[searched()], &[T(SearchPhrase)], &[N(EventTime)]),
        first(&[searched()], &[T(SearchPhrase)], &[T(SearchPhrase)]),
        first(&[searched()], &[T(SearchPhrase)], &[N(EventTime), T(SearchPhrase)]),
        of(Grouped {
            more_than: Some(large),
            order: Order::Largest(1),
            limit: 25,
            ..top(
                &[Where::Some(Url)],
                &[number(CounterId)],
                &[Count, Made::AverageLength(Url)],
            )
        }),
        of(Grouped {
            more_than: Some(large),
            order: Order::Largest(1),
            limit: 25,
            ..top(
                &[Where::Some(Referer)],
                &[Key::Host(Referer)],
                &[Count, Made::AverageLength(Referer), Made::Min(T(Referer))],
            )
        }),
        of(whole(
            &[],
            &(0..90)
                .map(|more| Made::SumPlus(ResolutionWidth, more))
                .collect::<Vec<_>>(),
        )),
        of(top(
            &[searched()],
            &[number(SearchEngineId), number(ClientIp)],
            &figures,
        )),
        of(top(&[searched()], &[number(WatchId), number(ClientIp)], &figures)),
        of(top(&[], &[number(WatchId), number(ClientIp)], &figures)),
        of(top(&[], &[text(Url)], &[Count])),
        of(top(&[], &[Key::One, text(Url)], &[Count])),
        of(top(&[], &less, &[Count])),
        of(top(&counter(&[counted(), Where::Some(Url)]), &[text(Url)], &[Count])),
        of(top(
            &counter(&[counted(), Where::Some(Title)]),
            &[text(Title)],
            &[Count],
        )),
        later(
            top(
                &counter(&[Where::IsNot(IsLink, 0), Where::Is(IsDownload, 0)]),
                &[text(Url)],
                &[Count],
            ),
            10,
        ),
        later(top(&counter(&[]), &source, &[Count]), 10),
        later(
            top(
                &counter(&[
                    Where::OneOf(TraficSourceId, [-1, 6]),
                    Where::Is(RefererHash, NO_REFERER),
                ]),
                &[number(UrlHash), number(EventDate)],
                &[Count],
            ),
            2,
        ),
        later(
            top(
                &counter(&[counted(), Where::Is(UrlHash, FIRST_URL)]),
                &[number(WindowClientWidth), number(WindowClientHeight)],
                &[Count],
            ),
            0,
        ),
        later(
            Grouped {
                order: Order::Keys,
                ..top(&counter(&[counted()]), &[Key::Minute(EventTime)], &[Count])
            },
            10,
        ),
    ]
}
