/** The statistics as statements of SQL, which run as the first stage of a pipeline, over the same connection. */
import type { Document } from 'mongodb';
import type { Reads } from '../../db/reads.js';
import { SHOWN_LINKS, SHOWN_SOURCES, type Cadence, type Links, type SourceMonths, type Statistics, type Word } from './statistics.js';

const PER_SOURCE_AND_MONTH = `
  SELECT source, min("sourceName") AS name, date_trunc('month', published) AS month, count(*) AS n,
         sum(count(*)) OVER (PARTITION BY source) AS total
  FROM posts
  WHERE state = 'shown' AND published >= $1
  GROUP BY source, date_trunc('month', published)
  ORDER BY total DESC, source, month`;

const CADENCE = `
  WITH pauses AS (
    SELECT source, "sourceName" AS name,
           extract(epoch FROM published - lag(published) OVER (PARTITION BY source ORDER BY published)) / 86400 AS days
    FROM posts
    WHERE state = 'shown'
  )
  SELECT source AS _id, min(name) AS name, percentile_disc(0.5) WITHIN GROUP (ORDER BY days)::float8 AS days
  FROM pauses
  WHERE days IS NOT NULL
  GROUP BY source
  ORDER BY days, source
  LIMIT ${SHOWN_SOURCES}`;

const WORDS = 'SELECT _id, n FROM suggestions ORDER BY n DESC, _id LIMIT 20';

const LINKS = `
  WITH linked AS (
    SELECT source, min("sourceName") AS name, host, count(*) AS n
    FROM posts, unnest(links) AS host
    WHERE state = 'shown'
    GROUP BY source, host
  ), named AS (
    SELECT source, linked.name, host, n,
           coalesce((SELECT sources.name FROM sources
                     WHERE home ~ ('^https?://(www\\.)?' || replace(host, '.', '\\.') || '(/|:|$)')
                     LIMIT 1), host) AS "to"
    FROM linked
  )
  SELECT * FROM named
  WHERE "to" <> name
  ORDER BY n DESC, source, host
  LIMIT ${SHOWN_LINKS}`;

/** The statements by the charts that they make. */
export const STATEMENTS = { PER_SOURCE_AND_MONTH, CADENCE, WORDS, LINKS };

interface MonthRow extends Document {
  source: string;
  name: string;
  month: Date;
  n: number;
}

interface LinkRow extends Document {
  source: string;
  name: string;
  host: string;
  n: number;
  to: string;
}

export const bySql = (reads: Reads): Statistics => ({
  async perSourceAndMonth(from: Date): Promise<SourceMonths[]> {
    const sources = new Map<string, SourceMonths>();
    for (const { source, name, month, n } of await reads.sql<MonthRow>(PER_SOURCE_AND_MONTH, [from])) {
      const one = sources.get(source) ?? { _id: source, name, months: [] };
      one.months.push({ month, n });
      sources.set(source, one);
    }
    return [...sources.values()].slice(0, SHOWN_SOURCES);
  },
  cadence: () => reads.sql<Cadence>(CADENCE),
  words: () => reads.sql<Word>(WORDS),
  async links(): Promise<Links[]> {
    const rows = await reads.sql<LinkRow>(LINKS);
    return rows.map(({ source, name, host, n, to }) => ({ _id: { source, host }, name, to, n }));
  },
});
