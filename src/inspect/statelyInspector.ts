/**
 * Shows conversations in the inspector of `@statelyai/inspect`, or in any observer of XState's inspection. Invariant:
 * contexts and events are passed as excerpts without credentials and secrets, because that inspector sends everything
 * on, by default to a page on another host. The root actor of a conversation has the conversation's id as its name.
 */
import type { Json } from '../../machines/vocabulary.ts';
import { ConfigurationError } from '../errors.ts';
import { redactor } from '../log/redact.ts';
import type { InspectObserver } from '../options.ts';
import { checkOptionsOf, hasMethods, object, strings } from '../validation.ts';
import { CONTEXT, type ExcerptLimits, excerpt } from './excerpt.ts';

interface Snapshot {
  readonly status?: unknown;
  readonly value?: unknown;
  readonly context?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
}
interface Ref {
  readonly id: string;
  readonly sessionId: string;
  readonly _parent?: Ref;
  readonly logic?: unknown;
  getSnapshot(): Snapshot;
}
interface InspectedEvent {
  readonly type: string;
  readonly rootId?: string;
  readonly actorRef: Ref;
  readonly sourceRef?: Ref;
  readonly event?: { readonly type: string };
  readonly snapshot?: Snapshot;
}

const optionsValidator = object({ secrets: strings });

/** An inspector, or its observer. */
export type StatelyInspector = { next?(event: never): void } | { inspect: { next?(event: never): void } };

/**
 * An observer for `inspect` of `createAgent`: `inspect: statelyInspector(createWebSocketInspector(), { secrets })`.
 * The agent's own `secrets` are always redacted. Throws ConfigurationError.
 */
export function statelyInspector(
  inspector: StatelyInspector,
  options: { secrets?: readonly string[] } = {},
): InspectObserver {
  checkOptionsOf('statelyInspector', options, optionsValidator);
  const { secrets = [] } = options;
  const candidate: unknown = 'inspect' in Object(inspector) ? Object(inspector).inspect : inspector;
  if (!hasMethods(candidate, 'next'))
    throw new ConfigurationError(
      'statelyInspector needs an inspector of @statelyai/inspect, or an observer with next (@xstate/inspect is for XState 4)',
    );
  const observer = candidate as { next(event: InspectedEvent): void };
  const redact = redactor(secrets);
  const shown = (one: unknown, limits?: ExcerptLimits): Json => excerpt(one, limits, redact);
  const shownSnapshot = ({ status, value, context, output, error }: Snapshot): Snapshot => ({
    status,
    value,
    context: shown(context, CONTEXT),
    ...(output !== undefined && { output: shown(output) }),
    ...(error !== undefined && { error: shown(error) }),
  });
  const refs = new WeakMap<Ref, Ref>();
  const shownRef = (ref: Ref): Ref => {
    const existing = refs.get(ref);
    if (existing) return existing;
    const { logic, _parent } = ref;
    const copy: Ref = Object.create(ref, {
      logic: { value: logic },
      _parent: { get: () => _parent && shownRef(_parent) },
      getSnapshot: { value: () => shownSnapshot(ref.getSnapshot()) },
    });
    refs.set(ref, copy);
    return copy;
  };
  return {
    next(event) {
      const { type, rootId, actorRef, sourceRef, event: sent, snapshot } = event as InspectedEvent;
      // The Stately inspector ignores other types, so they need no copy.
      if (type !== '@xstate.actor' && type !== '@xstate.event' && type !== '@xstate.snapshot') return;
      observer.next({
        type,
        ...(rootId !== undefined && { rootId }),
        actorRef: shownRef(actorRef),
        ...(sourceRef && { sourceRef: shownRef(sourceRef) }),
        ...(sent && { event: shown(sent) as unknown as { type: string } }),
        ...(snapshot && { snapshot: shownSnapshot(snapshot) }),
      });
    },
  };
}
