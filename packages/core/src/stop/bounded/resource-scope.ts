/** Resources that end with their owner. Adding to an ended owner disposes the resource immediately. */
export class ResourceScope implements Disposable {
  #things: Set<Disposable> | undefined = new Set();

  /** Returns a handle that disposes the resource before its owner ends. */
  add(thing: Disposable): Disposable {
    const things = this.#things;
    if (things === undefined) {
      thing[Symbol.dispose]();
      return thing;
    }
    things.add(thing);
    return {
      [Symbol.dispose]: () => {
        things.delete(thing);
        thing[Symbol.dispose]();
      },
    };
  }

  [Symbol.dispose](): void {
    const things = this.#things ?? [];
    this.#things = undefined;
    for (const thing of things) thing[Symbol.dispose]();
  }
}
