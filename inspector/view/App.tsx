/** The page: its panels, and which of them fit a width. */

import type { Signal } from '@preact/signals';
import { plural } from '../../src/words/formats.ts';
import { callMs } from '../model/stepRows.ts';
import { cards } from '../state/decisionCards.ts';
import {
  isNarrow,
  isPast,
  moment,
  type NarrowTab,
  narrowTab,
  open,
  type Tab,
  tab,
  windowSize,
} from '../state/pageState.ts';
import { ChartPanel } from './ChartPanel.tsx';
import { Crumbs, StatusBar, TopBar } from './Frame.tsx';
import { Context } from './panels/Context.tsx';
import { Decision } from './panels/Decision.tsx';
import { Events, eventsTitle } from './panels/Events.tsx';
import { Redactions } from './panels/Redactions.tsx';
import { Sequence } from './panels/Sequence.tsx';
import { cycleCount, Steps } from './panels/Steps.tsx';
import { Split, sizeOf } from './Split.tsx';
import { Help, Start } from './Start.tsx';
import { Player, TimeLine, timeLineHeight } from './TimeLine.tsx';
import { Tree } from './Tree.tsx';

const NAMES: Readonly<Record<Tab, string>> = {
  steps: 'Steps',
  events: 'Events',
  sequence: 'Sequence',
  context: 'Context',
};

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
  const all: readonly Tab[] = isXstate ? ['events', 'context'] : (Object.keys(NAMES) as Tab[]);
  // In a wide window the events have their own column.
  const names = isWide ? all.filter((name) => name !== 'events') : all;
  const shown = names.includes(tab.value) ? tab.value : (names[0] ?? 'events');
  return (
    <section class="right-panel" aria-label={NAMES[shown]}>
      <div class="panel-head">
        <Tabs names={names} shown={shown} into={tab} labelOf={(name) => NAMES[name]} />
        <span class="right quiet">
          {shown === 'events' ? eventsTitle() : shown === 'steps' ? plural(cycleCount(), 'cycle') : ''}
        </span>
      </div>
      {{ steps: <Steps />, events: <Events />, sequence: <Sequence />, context: <Context /> }[shown]}
    </section>
  );
}

const NARROW: Readonly<Record<NarrowTab, string>> = { chart: 'Chart', steps: 'Steps', events: 'Events', time: 'Time' };

/** One column: waiting cards stay on top, and tabs show everything else. */
function Narrow() {
  const { of } = open.value ?? {};
  const names = (Object.keys(NARROW) as NarrowTab[]).filter(
    (name) => name === 'chart' || (of === undefined ? name === 'steps' : of === 'runchart' || name === 'events'),
  );
  const shown = names.includes(narrowTab.value) ? narrowTab.value : 'chart';
  const waits = isPast.value ? [] : cards();
  return (
    <div class="narrow">
      <Tree />
      {waits.length > 0 && (
        <section class="on-top" aria-label="Decisions">
          {waits.map((card) => (
            <Decision key={card.key} card={card} ms={callMs(card.call, moment.value)} />
          ))}
        </section>
      )}
      <div class="panel-head">
        <Tabs
          names={names}
          shown={shown}
          into={narrowTab}
          labelOf={(name) => (of === undefined && name === 'steps' ? 'Start' : NARROW[name])}
        />
      </div>
      {shown === 'chart' && (
        <main>
          <Crumbs />
          <ChartPanel />
        </main>
      )}
      {shown === 'steps' && (of === undefined ? <Start /> : <Steps />)}
      {shown === 'events' && <Events />}
      {shown === 'time' && (
        <div class="dock">
          <Player />
          <TimeLine />
        </div>
      )}
    </div>
  );
}

interface TabsProps<Name extends string> {
  names: readonly Name[];
  shown: Name;
  /** Set to the chosen name. */
  into: Signal<Name>;
  labelOf(name: Name): string;
}

function Tabs<Name extends string>({ names, shown, into, labelOf }: TabsProps<Name>) {
  const choose = (name: Name): void => {
    into.value = name;
  };
  return (
    <div class="tabs" role="tablist" aria-label="Panels">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={shown === name}
          class={shown === name ? 'is-on' : ''}
          onClick={() => choose(name)}
        >
          {labelOf(name)}
        </button>
      ))}
    </div>
  );
}

function Panels({ isWide }: { isWide: boolean }) {
  const [tree, right] = [sizeOf('tree'), sizeOf('right')];
  const events = isWide ? sizeOf('events') : 0;
  const hasTree = windowSize.value.width >= 1360;
  const columns = [`${hasTree ? tree : 48}px`, 'minmax(0, 1fr)', `${right}px`, ...(isWide ? [`${events}px`] : [])];
  const rail = hasTree ? tree : 48;
  return (
    <div class="middle" style={{ gridTemplateColumns: columns.join(' ') }}>
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
      {hasTree && <Split name="tree" size={tree} others={right + events} grows={1} place={`${tree}px`} />}
      <Split name="right" size={right} others={rail + events} grows={-1} place={`calc(100% - ${right + events}px)`} />
      {isWide && (
        <Split name="events" size={events} others={rail + right} grows={-1} place={`calc(100% - ${events}px)`} />
      )}
    </div>
  );
}

function Dock() {
  if (open.value?.of !== 'runchart') {
    return (
      <div class="dock">
        <p class="dock-empty">
          {open.value ? 'This app keeps no log, so there is no time line.' : 'The time line of the run shows here.'}
        </p>
      </div>
    );
  }
  return (
    <div class="dock">
      <Split name="dock" size={timeLineHeight.value} others={0} grows={-1} />
      <Player />
      <TimeLine />
    </div>
  );
}

export function App() {
  const isWide = windowSize.value.width >= 1760 && open.value?.of === 'runchart';
  const looks = ['page', isWide ? 'is-wide' : '', isPast.value ? 'is-past' : ''];
  return (
    <div class={looks.join(' ')} style={{ '--tree': `${sizeOf('tree')}px` }}>
      <TopBar />
      {isNarrow.value ? (
        <Narrow />
      ) : (
        <>
          <Panels isWide={isWide} />
          <Dock />
        </>
      )}
      <StatusBar />
      <Redactions />
      <Help />
    </div>
  );
}
