/** What the queries of a page cost and how the database runs them. */
import type { Document } from 'mongodb';
import { EJSON } from 'bson';
import type { Context, Page } from '../context.js';
import { html } from '../html.js';

/** The stages of a plan, outermost first: `LIMIT ← FETCH ← IXSCAN published_-1`. */
export function stagesOf(explained: Document): string {
  const cursor = explained.stages?.find((stage: Document) => stage.$cursor)?.$cursor ?? explained;
  const names: string[] = [];
  for (let stage: Document | undefined = cursor.queryPlanner?.winningPlan; stage; stage = stage.inputStage ?? stage.inputStages?.[0] ?? stage.queryPlan) {
    if (stage.stage) names.push(stage.indexName ? `${stage.stage} ${stage.indexName}` : stage.stage);
  }
  const pipeline = (explained.stages ?? []).map((stage: Document) => Object.keys(stage)[0]).filter((name: string) => name !== '$cursor');
  return [...pipeline.reverse(), ...names].join(' ← ');
}

export async function explain(context: Context): Promise<Page> {
  const of = context.url.searchParams.get('of') ?? '/';
  const rehearsed = await context.site.rehearse(context, of);
  const explained = await rehearsed.reads.explain();
  return {
    kind: 'page',
    title: `Explained: ${of}`,
    unlisted: true,
    main: html`<h1>What <a href="${of.startsWith('/') ? of : '/'}">${of}</a> asks</h1>
<p class="lead">The page's queries, and what <code>explain</code> with <code>executionStats</code> says of each.</p>
${explained.map((answer, i) => {
  const command = rehearsed.reads.commands[i] as Document;
  const stats = answer.executionStats ?? answer.stages?.find((stage: Document) => stage.$cursor)?.$cursor?.executionStats ?? {};
  return html`<section><h2>${String(command.find ?? command.aggregate)}</h2>
<p>${stagesOf(answer)}</p>
<p>${stats.totalKeysExamined ?? 0} keys and ${stats.totalDocsExamined ?? 0} documents examined, ${stats.nReturned ?? 0} returned, ${stats.executionTimeMillis ?? 0} ms.</p>
<pre>${EJSON.stringify(command, undefined, 1, { relaxed: true })}</pre>
<details><summary>The whole plan</summary><pre>${EJSON.stringify({ queryPlanner: answer.queryPlanner, executionStats: answer.executionStats, stages: answer.stages }, undefined, 1, { relaxed: true })}</pre></details></section>`;
})}`,
  };
}
