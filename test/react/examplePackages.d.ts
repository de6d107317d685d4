/** What the examples use of packages that are not installed here, and styles, which the build of Next takes. */
declare module 'next/navigation' {
  export function redirect(address: string): never;
}
declare module 'next/headers' {
  export function headers(): Promise<Headers>;
}
declare module '*.css';
declare module '@ai-sdk/otel' {
  export class OpenTelemetry {}
}
declare module 'resumable-stream' {
  interface ResumableStreamContext {
    createNewResumableStream(
      id: string,
      makeStream: () => ReadableStream<string>,
    ): Promise<ReadableStream<string> | null>;
    resumeExistingStream(id: string): Promise<ReadableStream<string> | null | undefined>;
  }
  export function createResumableStreamContext(options: {
    waitUntil: ((promise: Promise<unknown>) => void) | null;
  }): ResumableStreamContext;
}
