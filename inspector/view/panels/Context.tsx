/** The context at one moment, and its difference from another. Invariant: unchanged values are only counted. */

import { useState } from 'preact/hooks';
import { sourceText } from '../../../src/printable.ts';
import { count, plural } from '../../../src/words/formats.ts';
import { type Difference, differences } from '../../model/contextAt.ts';
import {
  compared,
  comparedMoment,
  isOfSamples,
  place,
  sampleCount,
  showSample,
  toggleComparison,
} from '../../state/comparedContexts.ts';
import { copy } from '../../state/logFiles.ts';
import { open } from '../../state/pageState.ts';
import { valueText } from './CallDetail.tsx';

export function Context() {
  const [isWhole, showWhole] = useState(false);
  const both = compared.value;
  if (!both) {
    const why = isOfSamples.value
      ? open.value?.source === 'live'
        ? 'The actor is asked for its context as long as this is open.'
        : 'A file holds no context of an app.'
      : 'Nothing is known before the first entry.';
    return <p class="panel-empty">{why}</p>;
  }
  const { before, after } = both;
  const { changed, same } = differences(before.context, after.context);
  return (
    <div class="context" id="context">
      <header>
        <span class="moments">
          <span class="mono">{before.name}</span> → <b class="mono">{after.name}</b>
        </span>
        <button
          type="button"
          class="quiet-button right"
          aria-pressed={comparedMoment.value !== undefined}
          onClick={toggleComparison}
        >
          {comparedMoment.value === undefined ? 'Compare from here' : 'Compare with the one before'}
        </button>
      </header>
      {isOfSamples.value && (
        <div class="sample">
          <button type="button" class="quiet-button" disabled={place.value <= 0} onClick={() => showSample(-1)}>
            ‹<span class="spoken">earlier moment</span>
          </button>
          moment {count(place.value + 1)} of {count(sampleCount.value)}
          <button
            type="button"
            class="quiet-button"
            disabled={place.value >= sampleCount.value - 1}
            onClick={() => showSample(1)}
          >
            ›<span class="spoken">later moment</span>
          </button>
        </div>
      )}
      {changed.length === 0 && <p class="quiet">Nothing changed between these two.</p>}
      <dl class="changes mono">
        {changed.map((one) => (
          <Change key={one.path} one={one} />
        ))}
      </dl>
      <footer>
        <span class="quiet">{plural(same, 'value')} unchanged</span>
        <button type="button" class="link" aria-expanded={isWhole} onClick={() => showWhole(!isWhole)}>
          {isWhole ? 'changes alone' : 'the whole context'}
        </button>
        <button
          type="button"
          class="link"
          onClick={() => void copy(sourceText(JSON.stringify(after.context, null, 2)), `context at ${after.name}`)}
        >
          copy as JSON
        </button>
      </footer>
      {isWhole && <pre class="whole">{valueText(after.context)}</pre>}
    </div>
  );
}

function Change({ one: { path, before, after } }: { one: Difference }) {
  return (
    <>
      <dt>{path === '' ? 'context' : path}</dt>
      {before !== undefined && (
        <dd class="removed">
          <span class="spoken">before</span>
          {before}
        </dd>
      )}
      {after !== undefined && (
        <dd class="added">
          <span class="spoken">after</span>
          {after}
        </dd>
      )}
    </>
  );
}
