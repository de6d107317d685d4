/** The page: its panels, and which of them a width has room for. */

import { plural } from '../model/words.ts';
import { isPast, open, type Tab, tab, windowSize } from '../state/store.ts';
import { ChartPanel } from './ChartPanel.tsx';
import { Events, eventsTitle } from './Events.tsx';
import { Crumbs, StatusBar, TopBar } from './Frame.tsx';
import { Sequence } from './Sequence.tsx';
import { Help, Start } from './Start.tsx';
import { cycleCount, Steps } from './Steps.tsx';
import { Player, TimeLine } from './TimeLine.tsx';
import { Tree } from './Tree.tsx';

const NAMES: Readonly<Record<Tab, string>> = { steps: 'Steps', events: 'Events', sequence: 'Sequence' };

function Right({ isWide }: { isWide: boolean }) {
  const isXstate = open.value?.of === 'xstate';
  if (!open.value) {
    return (
      <section class="right-panel" aria-label="Start">
        <div class="panel-head">
          <b>Start</b>
        </div>
        <Start />
      </section>
    );
  }
  const shown = isXstate ? 'events' : isWide && tab.value === 'events' ? 'steps' : tab.value;
  return (
    <section class="right-panel" aria-label={NAMES[shown]}>
      <div class="panel-head">
        {isXstate ? (
          <b>Events</b>
        ) : (
          <div class="tabs" role="tablist">
            {(Object.keys(NAMES) as Tab[]).map((name) => (
              <button
                key={name}
                type="button"
                role="tab"
                aria-selected={shown === name}
                class={shown === name ? 'is-on' : ''}
                onClick={() => {
                  tab.value = name;
                }}
              >
                {NAMES[name]}
              </button>
            ))}
          </div>
        )}
        <span class="right quiet">
          {shown === 'events' ? eventsTitle() : shown === 'steps' ? plural(cycleCount(), 'cycle') : ''}
        </span>
      </div>
      {shown === 'steps' ? <Steps /> : shown === 'events' ? <Events /> : <Sequence />}
    </section>
  );
}

export function App() {
  const isWide = windowSize.value.width >= 1760 && open.value?.of === 'runchart';
  return (
    <div class={`page${isWide ? ' is-wide' : ''}${isPast.value ? ' is-past' : ''}`}>
      <TopBar />
      <div class="middle">
        <Tree />
        <main>
          <Crumbs />
          <ChartPanel />
        </main>
        <Right isWide={isWide} />
        {isWide && (
          <section class="events-panel" aria-label="Events">
            <div class="panel-head">
              <b>Events</b>
              <span class="right quiet">{eventsTitle()}</span>
            </div>
            <Events />
          </section>
        )}
      </div>
      <div class="dock">
        {open.value?.of === 'runchart' ? (
          <>
            <Player />
            <TimeLine />
          </>
        ) : (
          <p class="dock-empty">
            {open.value ? 'This app keeps no log, so there is no time line.' : 'The time line of the run shows here.'}
          </p>
        )}
      </div>
      <StatusBar />
      <Help />
    </div>
  );
}
