/** Statistics, each by one query, which may be asked for in either language: posts per source and month, cadence, words, links. */
import type { Context, Page } from '../context.js';
import { bars, rowsOfBars } from '../charts.js';
import { html } from '../html.js';
import { byPipelines } from '../statistics/pipelines.js';
import { STATEMENTS, bySql } from '../statistics/sql.js';
import { fetching } from './fetching.js';

export async function figures(context: Context): Promise<Page> {
  const now = new Date();
  const from = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 11, 1));
  const { reads } = context;
  const inSql = context.url.searchParams.get('in') === 'sql';
  const ask = inSql ? bySql(reads) : byPipelines(reads);
  const [sources, pauses, words, links, fetches] = await Promise.all([ask.perSourceAndMonth(from), ask.cadence(), ask.words(), ask.links(), fetching(reads, now)]);
  const months = Array.from({ length: 12 }, (_none, i) => new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + i, 1)));
  const monthName = new Intl.DateTimeFormat('en-GB', { month: 'short', timeZone: 'UTC' });
  return {
    kind: 'page',
    title: 'Figures',
    main: html`<h1>Figures</h1>
<p class="lead">${inSql ? html`The charts of posts are asked for in SQL; <a href="/stats">the same by pipelines</a>.` : html`Each chart is one pipeline; <a href="/stats?in=sql">the same in SQL</a>.`} <code>explain</code> below shows them.</p>
<section><h2>Posts by source and month</h2>${rowsOfBars('Posts by source and month', months.map((month) => monthName.format(month)), sources.map((source) => ({
  name: source.name,
  href: `/source/${source._id}`,
  values: months.map((month) => source.months.find((one) => one.month.getTime() === month.getTime())?.n ?? 0),
})))}</section>
<section><h2>Days between posts</h2><p>The median pause between two posts of a source.</p>${bars('Days between posts', pauses.map(({ _id, name, days }) => ({ name, href: `/source/${_id}`, value: days, label: days.toFixed(1) })))}</section>
<section><h2>Words in titles</h2>${bars('Words in titles', words.map(({ _id, n }) => ({ name: _id, href: `/search?q=${encodeURIComponent(_id)}`, value: n })))}</section>
<section><h2>Who links to whom</h2>${links.length ? html`<div class="scroll"><table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">Posts</th></tr></thead><tbody>${links.map((link) => html`<tr><td><a href="/source/${link._id.source}">${link.name}</a></td><td>${link.to}</td><td>${link.n}</td></tr>`)}</tbody></table></div>` : html`<p>No links between sources yet.</p>`}</section>
${fetches}${inSql ? html`<section><h2>The statements</h2>${Object.values(STATEMENTS).map((text) => html`<pre><code>${text.replace(/^ {2}/gm, '').trim()}</code></pre>`)}</section>` : html``}`,
  };
}
