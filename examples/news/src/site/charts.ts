/** Charts as inline SVG. Colours come from the style sheet by class, so that they follow light and dark. */
import { html, type Html } from './html.js';

const width = 720;

/** A row of small bars for each name: twelve months side by side, all rows to the same scale. */
export function rowsOfBars(title: string, columns: string[], rows: { name: string; href: string; values: number[] }[]): Html {
  const left = 190;
  const rowHeight = 34;
  const most = Math.max(1, ...rows.flatMap(({ values }) => values));
  const step = (width - left) / columns.length;
  const height = rows.length * rowHeight + 26;
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}">
${rows.map(({ name, href, values }, row) => html`<a href="${href}"><text x="${left - 12}" y="${row * rowHeight + rowHeight - 8}" text-anchor="end">${name}</text></a>
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
  const left = 190;
  const rowHeight = 24;
  const most = Math.max(1e-9, ...rows.map(({ value }) => value));
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${rows.length * rowHeight + 4}" role="group" aria-label="${title}">
${rows.map(({ name, href, value, label }, row) => {
  const long = Math.max(1, ((width - left - 80) * value) / most);
  const text = html`<text x="${left - 12}" y="${row * rowHeight + 17}" text-anchor="end">${name}</text>`;
  return html`${href ? html`<a href="${href}">${text}</a>` : text}<rect class="bar" x="${left}" y="${row * rowHeight + 5}" width="${long.toFixed(1)}" height="${rowHeight - 9}"/><text class="tick" x="${(left + long + 6).toFixed(1)}" y="${row * rowHeight + 17}">${label ?? value}</text>`;
})}
</svg></div>`;
}

/** Lines over time, to one scale. */
export function lines(title: string, ticks: string[], series: { name: string; values: (number | null)[] }[], unit: string): Html {
  const height = 200;
  const [left, bottom] = [50, 24];
  const most = Math.max(1, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const x = (i: number) => left + (i * (width - left - 10)) / Math.max(1, ticks.length - 1);
  const y = (value: number) => 10 + (height - bottom - 10) * (1 - value / most);
  return html`<div class="scroll" tabindex="0"><svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${title}">
<line class="axis" x1="${left}" x2="${width}" y1="${y(0)}" y2="${y(0)}"/>
<text class="tick" x="${left - 6}" y="${y(most) + 5}" text-anchor="end">${Math.round(most)} ${unit}</text><text class="tick" x="${left - 6}" y="${y(0) + 4}" text-anchor="end">0</text>
${series.map(({ name, values }, n) => html`<polyline class="line line-${n}" points="${values.map((value, i) => (value === null ? '' : `${x(i).toFixed(1)},${y(value).toFixed(1)}`)).filter(Boolean).join(' ')}"><title>${name}</title></polyline>`)}
<text class="tick" x="${left}" y="${height - 6}">${ticks[0] ?? ''}</text><text class="tick" x="${width - 10}" y="${height - 6}" text-anchor="end">${ticks.at(-1) ?? ''}</text>
</svg></div>
<p class="legend">${series.map(({ name }, n) => html`<span class="key key-${n}">${name}</span> `)}</p>`;
}
