/**
 * The details of one call: its arguments, who edited them, and its result. The other panels show values in the same
 * way.
 */
import { useState } from 'preact/hooks';
import { count } from '../../../src/words/formats.ts';
import { argsAt, argsStateAt, editedAt } from '../../model/callStates.ts';
import type { CallFacts } from '../../model/logFacts.ts';
import { cursor } from '../../state/pageState.ts';

const RESULT_LINES = 12;

/** Returns a value as lines of text without markup. */
export const valueText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);

export function Arguments({ value }: { value: unknown }) {
  const fields =
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value)
      : [['', value] as const];
  return (
    <dl class="fields">
      {fields.map(([name, field]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{valueText(field)}</dd>
        </div>
      ))}
    </dl>
  );
}

const ARGUMENTS = { ran: 'What ran', toRun: 'What is to run', notRun: 'What did not run' } as const;

export function CallDetail({ call }: { call: CallFacts }) {
  const [all, showAll] = useState(false);
  const { result } = call;
  const lines = (result && result.at <= cursor.value ? result.text : '').split('\n');
  const shown = all ? lines : lines.slice(0, RESULT_LINES);
  const start = call.starts.filter(({ at }) => at <= cursor.value).at(-1);
  const edited = editedAt(call, cursor.value);
  return (
    <div class="call-detail">
      {edited !== undefined && (
        <p class="quiet">
          {ARGUMENTS[argsStateAt(call, cursor.value)]}, {edited}:
        </p>
      )}
      <Arguments value={call.argsText ?? argsAt(call, cursor.value)} />
      {edited !== undefined && (
        <>
          <p class="quiet">What the model asked for:</p>
          <Arguments value={call.args} />
        </>
      )}
      {result && result.at <= cursor.value && (
        <>
          <p class="quiet">
            {result.outcome}
            {result.code === undefined ? '' : ` · ${result.code}`}
          </p>
          <pre>{shown.join('\n')}</pre>
          {lines.length > RESULT_LINES && (
            <button type="button" class="link" aria-expanded={all} onClick={() => showAll(!all)}>
              {all ? 'less' : `${count(lines.length - RESULT_LINES)} more lines`}
            </button>
          )}
        </>
      )}
      {start && (
        <p class="quiet mono">
          {call.callId} · {call.starts.length === 1 ? '1 attempt' : `${call.starts.length} attempts`} · {start.key}
        </p>
      )}
    </div>
  );
}
