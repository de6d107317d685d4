/** Writes the projector's views of logs into a page, with the browser's language and time zone. */
import { project } from '../../src/projector/index.ts';

const logs = JSON.parse(document.getElementById('input').textContent);
const { locale, timeZone } = Intl.DateTimeFormat().resolvedOptions();
const found = {
  language: navigator.language,
  locale,
  timeZone,
  /** These prove that the language and the zone took effect. */
  month: new Date(0).toLocaleDateString(undefined, { month: 'long' }),
  number: (1234.5).toLocaleString(),
  offset: new Date(0).getTimezoneOffset(),
  views: logs.map((log) => JSON.stringify(project(log))),
};
const pre = document.createElement('pre');
pre.id = 'result';
// Base64 of UTF-8, so that nothing of it is markup.
pre.textContent = btoa(
  Array.from(new TextEncoder().encode(JSON.stringify(found)), (byte) => String.fromCharCode(byte)).join(''),
);
document.body.append(pre);
