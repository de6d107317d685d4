/**
 * The limits of a handler's simultaneous work. Invariant: it counts and reads a clock, and does nothing else. Each count is released
 * once, in any order. A refused request is not counted.
 */
import { LimitError } from '../errors.ts';
import { numberOrInfinity, object, whole } from '../validation.ts';

/** The limits of a handler's simultaneous work. */
export interface QuotaLimits {
  /** Event streams at once. Default: 5,000. */
  clients?: number;
  /** Event streams of one conversation at once. Default: 2,000. */
  clientsPerConversation?: number;
  /** New conversations in a minute. Default: 1,000. */
  creationsPerMinute?: number;
  /** Bytes of request bodies in memory at once. Default: 64 MiB. */
  bodiesBytes?: number;
  /** Requests without an answer at once; event streams are answered. Default: 1,000. */
  requests?: number;
  /** The most open conversations; those that have only readers make room. Default: 200. */
  openMax?: number;
  /** The time that an idle conversation stays open. Default: 60 s. */
  idleMs?: number;
}

export const quotaValidator = object({
  clients: whole(1),
  clientsPerConversation: whole(1),
  creationsPerMinute: whole(1),
  bodiesBytes: whole(1),
  requests: whole(1),
  openMax: whole(1),
  idleMs: numberOrInfinity(0),
});

const MINUTE_MS = 60_000;

/** A limit is used up: 429 where the caller asks for too much, 503 where the server is full. */
export class QuotaRefusal extends LimitError {
  readonly status: 429 | 503;
  readonly retryAfterS: number;

  constructor(message: string, status: 429 | 503, retryAfterS: number) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** The counts of one request, from its arrival to its answer. */
export interface RequestQuota {
  /** Counts bytes of the body. Throws QuotaRefusal. */
  addBytes(bytes: number): void;
  end(): void;
}

export class Quotas {
  readonly #limits: Required<Omit<QuotaLimits, 'openMax' | 'idleMs'>>;
  readonly #now: () => number;
  #requests = 0;
  #bodiesBytes = 0;
  #clients = 0;
  readonly #clientsOf = new Map<string, number>();
  /** The last creations, the oldest first; at most as many as a minute may have. */
  readonly #creations: { at: number }[] = [];

  constructor(limits: QuotaLimits = {}, now: () => number) {
    const { clients = 5_000, clientsPerConversation = 2_000, creationsPerMinute = 1_000 } = limits;
    const { bodiesBytes = 64 * 1_048_576, requests = 1_000 } = limits;
    this.#limits = { clients, clientsPerConversation, creationsPerMinute, bodiesBytes, requests };
    this.#now = now;
  }

  /** Throws QuotaRefusal. */
  beginRequest(): RequestQuota {
    const { requests, bodiesBytes } = this.#limits;
    if (this.#requests >= requests)
      throw new QuotaRefusal(`${requests} requests have no answer yet (limits.requests)`, 503, 1);
    this.#requests += 1;
    let held = 0;
    let isOver = false;
    return {
      addBytes: (bytes) => {
        if (this.#bodiesBytes + bytes > bodiesBytes)
          throw new QuotaRefusal(`request bodies hold ${bodiesBytes} bytes (limits.bodiesBytes)`, 503, 1);
        held += bytes;
        this.#bodiesBytes += bytes;
      },
      end: () => {
        if (isOver) return;
        isOver = true;
        this.#requests -= 1;
        this.#bodiesBytes -= held;
      },
    };
  }

  /** Counts a client of a conversation until the returned function is called. Throws QuotaRefusal. */
  beginClient(conversation: string): () => void {
    const { clients, clientsPerConversation } = this.#limits;
    const own = this.#clientsOf.get(conversation) ?? 0;
    if (own >= clientsPerConversation)
      throw new QuotaRefusal(`${own} clients read this conversation (limits.clientsPerConversation)`, 429, 5);
    if (this.#clients >= clients) throw new QuotaRefusal(`${clients} clients are connected (limits.clients)`, 503, 5);
    this.#clients += 1;
    this.#clientsOf.set(conversation, own + 1);
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#clients -= 1;
      const rest = (this.#clientsOf.get(conversation) ?? 1) - 1;
      if (rest > 0) this.#clientsOf.set(conversation, rest);
      else this.#clientsOf.delete(conversation);
    };
  }

  /** Counts a new conversation; the returned function releases the count if none was made. Throws QuotaRefusal. */
  beginCreation(): () => void {
    const now = this.#now();
    const creations = this.#creations;
    // The clock may have been set back.
    for (const creation of creations) creation.at = Math.min(creation.at, now);
    while (creations[0] !== undefined && now - creations[0].at >= MINUTE_MS) creations.shift();
    const [oldest = { at: now }] = creations;
    if (creations.length >= this.#limits.creationsPerMinute) {
      const waitS = Math.ceil((oldest.at + MINUTE_MS - now) / 1_000);
      throw new QuotaRefusal(
        `${creations.length} conversations were made in a minute (limits.creationsPerMinute)`,
        429,
        waitS,
      );
    }
    const creation = { at: now };
    creations.push(creation);
    return () => {
      const index = creations.indexOf(creation);
      if (index !== -1) creations.splice(index, 1);
    };
  }
}
