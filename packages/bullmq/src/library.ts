export type Library = typeof import('bullmq');

/** Loads BullMQ on first use. */
export async function loadLibrary(): Promise<Library> {
  try {
    return await import('bullmq');
  } catch (error) {
    throw new Error("@whoa/bullmq needs the package 'bullmq'; install it: npm install bullmq ioredis", {
      cause: error,
    });
  }
}
