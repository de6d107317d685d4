/**
 * `runchart/ai-sdk`: a model of any provider of the AI SDK, specification version 2 or 3. Rule: a call is one `doStream`
 * without a retry of its own, and every failure is a ModelError the run can act on; a provider that does not hear an abort
 * is left at once, and its stream is cancelled.
 */
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider';
import type { Json } from '../../../machines/vocabulary.ts';
import { type ImageLimits, imageLimitsOf } from '../../content/imageFormat.ts';
import { ConfigurationError } from '../../errors.ts';
import {
  checkOptionsOf,
  display,
  hasMethods,
  isObject,
  number,
  object,
  strings,
  type Validator,
} from '../../validation.ts';
import { abortGate } from '../abortGate.ts';
import type { Model, ModelPart, ModelRequest, Prices } from '../model.ts';
import { secretsIn, withSecrets } from '../secrets.ts';
import { streamedError, thrownError } from './failure.ts';
import { callOptions, type Sent, type SupportedUrls } from './prompt.ts';
import { SdkReply, type StreamPart } from './reply.ts';

export interface AiSdkSettings {
  /** Where the request names none. */
  temperature?: number;
  /** Sent with every request, by the provider's name. */
  providerOptions?: { [provider: string]: Json };
  /** Tokens the model can be given and give in one call. */
  contextWindow?: number;
  /** Sent as the output limit where a request names none. */
  maxOutputTokens?: number;
  prices?: Prices;
  /** What the model takes of images; 2,000 pixels on the longer side and 4.5 MiB encoded where it is not given. */
  imageLimits?: ImageLimits;
  /** Values that must never be logged. Credentials in the provider's headers are found without it. */
  secrets?: string[];
}

const tokens: Validator = {
  expected: 'a positive whole number of tokens',
  test: (value) => Number.isInteger(value) && Number(value) > 0,
};
const group: Validator = { expected: 'an object', test: isObject };
const settingsValidator = object({
  temperature: number(0),
  providerOptions: {
    expected: "an object of objects, by the provider's name",
    test: (value) => isObject(value) && Object.values(value).every(isObject),
    secret: true,
  },
  contextWindow: tokens,
  maxOutputTokens: tokens,
  prices: group,
  imageLimits: group,
  secrets: strings,
});

/** What is used of a provider's model, in both versions. */
interface SdkModel {
  readonly specificationVersion: unknown;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls?: PromiseLike<SupportedUrls> | SupportedUrls;
  doStream(options: LanguageModelV3CallOptions): PromiseLike<{ stream: ReadableStream<StreamPart> }>;
}

function sdkModel(given: object): SdkModel {
  const model = given as SdkModel & LanguageModelV3;
  if (!isObject(given) || !hasMethods(given, 'doStream')) {
    throw new ConfigurationError(
      `aiSdkModel() needs a language model of an AI SDK provider, such as anthropic('…'), got ${isObject(given) ? 'an object without doStream' : typeof given}`,
    );
  }
  const { specificationVersion: version } = model as SdkModel;
  if (version !== 'v2' && version !== 'v3') {
    throw new ConfigurationError(
      `aiSdkModel() takes specification versions v2 and v3, got ${display(version)}: install a provider of AI SDK 5 or 6`,
    );
  }
  if (typeof model.modelId !== 'string' || model.modelId === '' || typeof model.provider !== 'string') {
    throw new ConfigurationError('aiSdkModel(): the language model must have a modelId and a provider');
  }
  return model;
}

/**
 * A model of an AI SDK provider. What the provider attaches to a reply (signed reasoning, encrypted content) is kept in
 * `extra` and goes back to it unchanged. Printing the model shows neither the provider nor a secret. Throws
 * ConfigurationError for what is no such model, and for a setting that is unknown or cannot be used.
 */
export function aiSdkModel(languageModel: object, settings: AiSdkSettings = {}): Model {
  const source = sdkModel(languageModel);
  checkOptionsOf('aiSdkModel()', settings, settingsValidator);
  const { contextWindow, maxOutputTokens, prices, imageLimits, temperature, providerOptions } = settings;
  const id = source.modelId;
  if (imageLimits) imageLimitsOf({ id, imageLimits });
  const secrets = [...(settings.secrets ?? [])];
  const sent: Sent = {
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    // Each value was looked at; the declared type is wider, so that settings can be read from a file.
    ...(providerOptions && { providerOptions: providerOptions as NonNullable<Sent['providerOptions']> }),
  };
  const model: Model = {
    id,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(prices && { prices }),
    ...(imageLimits && { imageLimits }),
    stream: (request, { signal }) => streamed({ source, secrets, sent }, request, signal),
  };
  return withSecrets(model, secrets);
}

interface Call {
  source: SdkModel;
  secrets: string[];
  sent: Sent;
}

/** Providers keep their headers, and so their keys, in their configuration; they are read anew, since a key may change. */
async function learnSecrets({ source, secrets }: Call): Promise<void> {
  try {
    const { headers } = (source as { config?: { headers?: unknown } }).config ?? {};
    const given: unknown = await (typeof headers === 'function' ? headers() : headers);
    if (!isObject(given)) return;
    const texts = Object.entries(given).filter((field): field is [string, string] => typeof field[1] === 'string');
    for (const secret of secretsIn(Object.fromEntries(texts))) if (!secrets.includes(secret)) secrets.push(secret);
  } catch {
    // A provider without its key says so when it is called.
  }
}

async function open(call: Call, request: ModelRequest, signal: AbortSignal) {
  await learnSecrets(call);
  const { source, sent } = call;
  const supportedUrls = (await source.supportedUrls) ?? {};
  const options = callOptions(request, { provider: source.provider, supportedUrls }, sent);
  const { stream } = await source.doStream({ ...options, abortSignal: signal });
  return stream.getReader();
}

async function* streamed(call: Call, request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelPart, void> {
  const gate = abortGate(signal);
  const parts: ModelPart[] = [];
  const reply = new SdkReply((part) => parts.push(part), call.source.provider);
  let close = (): void => {};
  try {
    gate.check();
    // A source that cannot be cancelled is of no interest any more.
    const reader = await gate.race(
      (own) => open(call, request, own),
      (late) => void late.cancel().catch(() => {}),
    );
    close = () => void reader.cancel().catch(() => {});
    for (let more = true; more; ) {
      const read = await gate.race(
        () => reader.read(),
        () => {},
      );
      if (read.done) reply.end();
      else if (read.value?.type === 'error') throw streamedError(read.value.error, call.secrets, Date.now());
      else reply.take(read.value);
      more = !read.done && !reply.ended;
      for (const part of parts.splice(0)) {
        yield part;
        gate.check();
      }
    }
  } catch (error) {
    gate.check();
    throw thrownError(error, call.secrets, Date.now());
  } finally {
    gate.close();
    close();
  }
}
