import type { FileUIPart } from 'ai';

/** Uploads files first, so that a message has their addresses and not their bytes. */
export function upload(files: FileList | null): Promise<FileUIPart[]> {
  return Promise.all(
    [...(files ?? [])].map(async (file) => {
      const response = await fetch('/api/files', { method: 'POST', body: file });
      if (!response.ok) throw new Error(await response.text());
      const { path } = (await response.json()) as { path: string };
      const url = new URL(path, location.href).href;
      return { type: 'file', mediaType: file.type, filename: file.name, url };
    }),
  );
}
