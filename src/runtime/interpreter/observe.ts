/**
 * What the interpreter tells those who observe a conversation's charts. Rule: an observation names living actors, so an
 * observer copies what it keeps; where nobody observes, nothing is made.
 */
import type { ChartActor } from './chartActor.ts';
import type { ChartEvent, Transition } from './plan.ts';

export type Observation =
  /** Once a life: it was made, or lived already when the observer came. */
  | { type: 'actor'; actor: ChartActor }
  | { type: 'event'; actor: ChartActor; event: ChartEvent; sender: ChartActor | undefined }
  /** One microstep; the actor has the state and context that it led to. No transition: nothing took the event. */
  | { type: 'transition'; actor: ChartActor; event: ChartEvent; transition: Transition | undefined }
  | { type: 'settled'; actor: ChartActor; event: ChartEvent }
  | { type: 'stopped'; actor: ChartActor };

export type Observer = (observation: Observation) => void;
