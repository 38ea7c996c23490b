/** Charts as inline SVG. Colours come from the style sheet by class, so that they follow light and dark. */
import { html, type Html } from './html.js';

/** As wide as the column of text in a wide window, so that letters have the size that the style sheet says. */
const width = 646;

/** Names stand beside their bars. */
const left = 150;

const short = (name: string) => (name.length > 24 ? `${name.slice(0, 23)}…` : name);

/** A row of small bars for each name: twelve months side by side, all rows to the same scale. */
export function rowsOfBars(title: string, columns: string[], rows: { name: string; href: string; values: number[] }[]): Html {
  const rowHeight = 34;
  const most = Math.max(1, ...rows.flatMap(({ values }) => values));
  const step = (width - left) / columns.length;
  const height = rows.length * rowHeight + 26;
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}">
${rows.map(({ name, href, values }, row) => html`<a href="${href}"><text x="${left - 12}" y="${row * rowHeight + rowHeight - 8}" text-anchor="end">${short(name)}</text></a>
<line class="axis" x1="${left}" x2="${width}" y1="${row * rowHeight + rowHeight - 3}" y2="${row * rowHeight + rowHeight - 3}"/>
${values.map((value, i) => {
  const tall = ((rowHeight - 10) * value) / most;
  return value > 0 && html`<rect class="bar" x="${(left + i * step + 2).toFixed(1)}" y="${(row * rowHeight + rowHeight - 3 - tall).toFixed(1)}" width="${(step - 4).toFixed(1)}" height="${tall.toFixed(1)}"><title>${name}, ${columns[i]}: ${value}</title></rect>`;
})}`)}
${columns.map((column, i) => html`<text class="tick" x="${(left + i * step + step / 2).toFixed(1)}" y="${height - 8}" text-anchor="middle">${column}</text>`)}
</svg></div>`;
}

/** Horizontal bars, a number at the end of each. */
export function bars(title: string, rows: { name: string; href?: string; value: number; label?: string }[]): Html {
  const rowHeight = 24;
  const most = Math.max(1e-9, ...rows.map(({ value }) => value));
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${rows.length * rowHeight + 4}" role="group" aria-label="${title}">
${rows.map(({ name, href, value, label }, row) => {
  const long = Math.max(1, ((width - left - 80) * value) / most);
  const text = html`<text x="${left - 12}" y="${row * rowHeight + 17}" text-anchor="end">${short(name)}</text>`;
  return html`${href ? html`<a href="${href}">${text}</a>` : text}<rect class="bar" x="${left}" y="${row * rowHeight + 5}" width="${long.toFixed(1)}" height="${rowHeight - 9}"/><text class="tick" x="${(left + long + 6).toFixed(1)}" y="${row * rowHeight + 17}">${label ?? value}</text>`;
})}
</svg></div>`;
}

/** A span for each name, from a dot to a dot on one scale: how usual and how bad it gets. */
export function spread(title: string, rows: { name: string; href: string; from: number; to: number; label: string; warning?: string }[]): Html {
  const right = 160;
  const rowHeight = 24;
  const most = Math.max(1e-9, ...rows.map(({ to }) => to));
  const x = (value: number) => (left + 6 + ((width - left - right - 12) * value) / most).toFixed(1);
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${rows.length * rowHeight + 4}" role="group" aria-label="${title}">
${rows.map(({ name, href, from, to, label, warning }, row) => {
  const y = row * rowHeight + 13;
  return html`<a href="${href}"><text x="${left - 12}" y="${y + 4}" text-anchor="end">${short(name)}</text></a><line class="axis" x1="${left}" x2="${width - right}" y1="${y}" y2="${y}"/><line class="line" x1="${x(from)}" x2="${x(to)}" y1="${y}" y2="${y}"/><circle class="dot" cx="${x(from)}" cy="${y}" r="4"/><circle class="dot dot-1" cx="${x(to)}" cy="${y}" r="3.5"/><text class="tick" x="${width - right + 10}" y="${y + 4}">${label}${warning && html`<tspan class="fail">, ${warning}</tspan>`}</text>`;
})}
</svg></div>`;
}

/** With few points a line alone would be hard to see, and with a single one there would be none. */
const fewPoints = 40;

/** Lines over time, to one scale; below them marks where something happened, such as failures. */
export function lines(title: string, ticks: string[], series: { name: string; values: number[] }[], unit: string, marks: { name: string; values: number[] }): Html {
  const height = 200;
  const left = 70;
  const bottom = 34;
  const most = Math.max(1, ...series.flatMap(({ values }) => values));
  const x = (i: number) => (ticks.length > 1 ? left + 6 + (i * (width - left - 16)) / (ticks.length - 1) : (left + width) / 2);
  const y = (value: number) => 10 + (height - bottom - 10) * (1 - value / most);
  const at = (value: number, i: number) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`;
  const anyMarks = marks.values.some((value) => value > 0);
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}">
<line class="axis" x1="${left}" x2="${width}" y1="${y(0)}" y2="${y(0)}"/><line class="axis" x1="${left}" x2="${width}" y1="${y(most / 2)}" y2="${y(most / 2)}"/><line class="axis" x1="${left}" x2="${width}" y1="${y(most)}" y2="${y(most)}"/>
${[most, most / 2, 0].map((value) => html`<text class="tick" x="${left - 8}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${Math.round(value)}${value === most ? ` ${unit}` : ''}</text>`)}
${[...series.entries()].reverse().map(([n, { name, values }]) => html`<polyline class="line line-${n}" points="${values.map(at).join(' ')}"><title>${name}</title></polyline>${ticks.length <= fewPoints && values.map((value, i) => html`<circle class="dot dot-${n}" cx="${x(i).toFixed(1)}" cy="${y(value).toFixed(1)}" r="3"><title>${ticks[i]}, ${name}: ${Math.round(value)} ${unit}</title></circle>`)}`)}
${marks.values.map((value, i) => value > 0 && html`<rect class="fail" x="${(x(i) - 2).toFixed(1)}" y="${y(0) + 4}" width="4" height="8"><title>${ticks[i]}, ${marks.name}: ${value}</title></rect>`)}
<text class="tick" x="${left}" y="${height - 4}">${ticks[0] ?? ''}</text>${ticks.length > 1 && html`<text class="tick" x="${width}" y="${height - 4}" text-anchor="end">${ticks.at(-1) ?? ''}</text>`}
</svg></div>
<p class="legend">${series.map(({ name }, n) => html`<span class="key key-${n}">${name}</span> `)}${anyMarks && html`<span class="key key-fail">${marks.name}</span>`}</p>`;
}
