/** Loads the official client of a protocol, which users install only if they check that protocol. */
export async function loadLibrary<Library>(name: string, load: () => Promise<Library>): Promise<Library> {
  try {
    return await load();
  } catch (error) {
    throw new Error(`Checking this protocol needs a library: npm install ${name}`, { cause: error });
  }
}
