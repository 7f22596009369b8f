// The JavaScript side of a kernel: runs cells through the engine's inspector in its REPL mode, sends displays, carries calls of tools. Needs
// node 18 or newer and nothing else. Descriptor 3 is the channel to Haft (length as four bytes, little end first, then JSON). A thread of
// its own reads it, so that an interrupt is heard while the main thread is busy.
'use strict';
(() => {
  const fs = require('fs');
  const path = require('path');
  const util = require('util');
  const vm = require('vm');
  const url = require('url');
  const inspector = require('inspector');
  const { Writable } = require('stream');
  const { Worker } = require('worker_threads');
  const { createRequire } = require('module');

  const TEXT = 32000;
  const HEAD = 20, TAIL = 10, COLUMNS = 50, CELL = 200;
  const RICH = 1 << 20;
  const FRAMES = 3;

  // As they are before a cell can change them.
  const { stringify, parse } = JSON;
  const nextTurn = setImmediate;

  // ---- frames

  function writeAll(fd, data) {
    let at = 0;
    while (at < data.length) {
      try {
        at += fs.writeSync(fd, data, at);
      } catch (error) {
        if (fd === FRAMES && error.code === 'EBADF') {
          fs.writeSync(2, 'The cell has closed the descriptor through which its kernel speaks to Haft.\n');
          process.removeAllListeners('SIGTERM');
          process.kill(process.pid, 'SIGTERM');
        }
        if (error.code !== 'EAGAIN') throw error;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
      }
    }
  }

  function send(frame) {
    const body = Buffer.from(stringify(frame));
    const head = Buffer.alloc(4);
    head.writeUInt32LE(body.length);
    writeAll(FRAMES, Buffer.concat([head, body]));
  }

  function readExact(count) {
    const data = Buffer.alloc(count);
    let at = 0;
    while (at < count) {
      const got = fs.readSync(FRAMES, data, at, count - at, null);
      if (got === 0) process.kill(process.pid, 'SIGKILL');
      at += got;
    }
    return data;
  }

  // Where memory runs out, a kernel is to go before what else there is on the machine.
  try { fs.writeFileSync('/proc/self/oom_score_adj', '500'); } catch { /* Not ours to say. */ }
  writeAll(FRAMES, Buffer.from('h'));
  const init = parse(readExact(readExact(4).readUInt32LE()).toString());

  // Word 0: the main thread has heard of an interrupt. Word 1: where it was found (see `found`). Word 2: its termination is on its way.
  const heard = new Int32Array(new SharedArrayBuffer(12));
  const reader = new Worker(`
    const fs = require('fs');
    const inspector = require('inspector');
    const { parentPort, workerData } = require('worker_threads');
    const heard = workerData;
    const session = new inspector.Session();
    session.connectToMainThread();
    function exact(count) {
      const data = Buffer.alloc(count);
      let at = 0;
      while (at < count) {
        let got;
        try {
          got = fs.readSync(${FRAMES}, data, at, count - at, null);
        } catch (error) {
          if (error.code === 'EAGAIN') { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2); continue; }
          throw error;
        }
        if (got === 0) process.kill(process.pid, 'SIGKILL');
        at += got;
      }
      return data;
    }
    for (;;) {
      const frame = JSON.parse(exact(exact(4).readUInt32LE()).toString());
      if (frame.op !== 'interrupt') { parentPort.postMessage(frame); continue; }
      Atomics.store(heard, 0, 0);
      parentPort.postMessage(frame);
      // A main thread that waits for something hears of it; one that is busy has to be stopped, but only while it is in code that is not the
      // engine's own: one that is told to terminate just after a cell's last statement dies of it ("ToLocalChecked Empty MaybeLocal").
      for (let tries = 0; tries < 100 && Atomics.wait(heard, 0, 0, 15) === 'timed-out'; tries += 1) {
        Atomics.store(heard, 1, 0);
        Atomics.store(heard, 2, 0);
        session.post('Runtime.evaluate', { expression: "globalThis[Symbol.for('haft.found')]()" });
        while (Atomics.load(heard, 0) === 0 && tries < 100 && Atomics.wait(heard, 1, 0, 50) === 'timed-out') tries += 1;
        if (Atomics.load(heard, 1) !== 1) continue;
        session.post('Runtime.terminateExecution');
        Atomics.store(heard, 2, 1);
        break;
      }
    }
  `, { eval: true, workerData: heard, execArgv: [], stdin: false });
  reader.unref();

  let marks;
  try {
    marks = [fs.openSync('/proc/self/fd/1', 'w'), fs.openSync('/proc/self/fd/2', 'w')];
  } catch {
    marks = [1, 2];
  }
  function mark(what, streams = [0, 1]) {
    const data = Buffer.from(`\0${init.nonce}:${what}\0`);
    for (const stream of streams) writeAll(marks[stream], data);
  }

  // ---- displays

  let shown = 0, ids = 0;

  function cut(text, limit = TEXT) {
    if (text.length <= limit) return text;
    const half = limit >> 1;
    return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`;
  }

  function inspect(value) {
    try {
      return cut(util.inspect(value, { depth: 4, maxArrayLength: 100, maxStringLength: 10000, breakLength: 100, colors: false }));
    } catch (error) {
      return `<inspecting the value raised ${error && error.name}: ${error && error.message}>`;
    }
  }

  const isPlain = (value) => {
    if (value === null || typeof value !== 'object') return false;
    const proto = Object.getPrototypeOf(value);
    return proto === Object.prototype || proto === null;
  };

  function plain(value) {
    if (value === null || value === undefined) return null;
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (typeof value === 'boolean') return value;
    let text;
    if (typeof value === 'string') text = value;
    else if (value instanceof Date && !Number.isNaN(value.getTime())) text = value.toISOString();
    else if (typeof value === 'bigint') text = String(value);
    else text = inspect(value);
    return text.length <= CELL ? text : text.slice(0, CELL) + '…';
  }

  function tableOf(value) {
    if (!Array.isArray(value) || value.length === 0) return null;
    const cutRows = value.length > HEAD + TAIL;
    const rows = cutRows ? [...value.slice(0, HEAD), ...value.slice(-TAIL)] : value;
    if (!rows.every(isPlain) || !value.slice(0, 1000).every(isPlain)) return null;
    const columns = [];
    for (const row of rows) for (const key of Object.keys(row)) if (!columns.includes(key)) columns.push(key);
    if (columns.length === 0) return null;
    const picked = columns.length <= COLUMNS ? columns : [...columns.slice(0, COLUMNS / 2), ...columns.slice(-COLUMNS / 2)];
    return {
      kind: 'Array', columns: picked, rows: rows.map((row) => picked.map((key) => plain(row[key]))),
      shape: [value.length, columns.length], head: cutRows ? HEAD : value.length, tail: cutRows ? TAIL : 0, dtypes: [],
      columns_cut: picked.length < columns.length,
    };
  }

  function pictureType(data) {
    if (data[0] === 0x89 && data[1] === 0x50) return 'image/png';
    if (data[0] === 0xff && data[1] === 0xd8) return 'image/jpeg';
    if (data[0] === 0x47 && data[1] === 0x49) return 'image/gif';
    if (data[8] === 0x57 && data[9] === 0x45) return 'image/webp';
    return null;
  }

  const asBase64 = (data) => Buffer.from(data.buffer ?? data, data.byteOffset, data.byteLength).toString('base64');

  function bundleOf(value) {
    const data = {};
    try {
      const own = value?.[Symbol.for('Jupyter.display')];
      let made = typeof own === 'function' ? own.call(value) : null;
      if (!made && value instanceof Uint8Array && pictureType(value)) made = { [pictureType(value)]: value };
      if (!made && isPlain(value)) {
        if (Object.keys(value).some((key) => /^(image|text|application)\//.test(key))) made = value;
        else if (value.type === 'image' && value.data) made = { [value.mime ?? value.mimeType ?? pictureType(value.data) ?? 'image/png']: value.data };
        else if (typeof value.html === 'string' && Object.keys(value).length === 1) made = { 'text/html': value.html };
      }
      for (const [mime, item] of Object.entries(made ?? {})) {
        if (item instanceof Uint8Array || item instanceof ArrayBuffer) data[mime] = asBase64(item);
        else if (typeof item === 'string' && item.length <= (mime.startsWith('image/') ? 22 << 20 : RICH)) data[mime] = item;
        else if (isPlain(item) || Array.isArray(item)) data[mime] = item;
      }
    } catch (error) {
      data['text/plain'] = `${inspect(value)}\n[displaying it raised ${error && error.name}: ${error && error.message}]`;
    }
    data['text/plain'] ??= data['text/html'] !== undefined ? '<HTML>' : inspect(value);
    return data;
  }

  function show(value, { result = false, id = null, update = false } = {}) {
    let table = null;
    try { table = tableOf(value); } catch { /* Shown as text. */ }
    shown += 1;
    mark(`d${shown}`, [0]);
    send({ op: 'display', n: shown, result, update, id, data: bundleOf(value), table });
  }

  function display(value, options = {}) {
    let id = options.display_id ?? options.displayId ?? null;
    if (id === true) id = `display_${++ids}`;
    show(value, { id });
    if (id !== null) return { display_id: id, update: (next) => show(next, { id, update: true }) };
  }
  display.html = (text) => show({ 'text/html': String(text), 'text/plain': '<HTML>' });
  display.image = (data, mime) => {
    const bytes = typeof data === 'string' ? fs.readFileSync(data) : data;
    show({ [mime ?? pictureType(bytes) ?? 'image/png']: bytes, 'text/plain': '<image>' });
  };

  // ---- tools

  const open = new Map();
  let calls = 0;

  class ToolError extends Error {
    constructor(text, structured, content) {
      super(text);
      this.name = 'ToolError';
      Object.defineProperty(this, 'structured', { value: structured });
      Object.defineProperty(this, 'content', { value: content });
    }
  }

  // A String, so that it can be used as its text, with what else there is beside it.
  class ToolResult extends String {
    constructor(text, structured, content) {
      super(text);
      const images = content.filter((piece) => piece.type === 'image')
        .map((piece) => ({ type: 'image', mime: piece.mime, data: Buffer.from(piece.data, 'base64') }));
      const tables = content.filter((piece) => piece.type === 'table').map(({ columns, rows }) => ({ columns, rows }));
      for (const [name, value] of Object.entries({ text, structured, content, images, tables })) Object.defineProperty(this, name, { value });
    }
    [util.inspect.custom]() { return this.text; }
    toJSON() { return this.text; }
  }

  function tool(name, args = {}) {
    calls += 1;
    const id = calls;
    return new Promise((resolve, reject) => {
      open.set(id, { resolve, reject });
      send({ op: 'call', id, tool: String(name), arguments: args });
    });
  }

  function replied(frame) {
    const call = open.get(frame.id);
    if (!call) return;
    open.delete(frame.id);
    const { is_error: failed, content, structured } = frame.outcome;
    const text = content.filter((piece) => piece.type === 'text').map((piece) => piece.text).join('\n');
    if (failed) call.reject(new ToolError(text, structured, content));
    else call.resolve(new ToolResult(text, structured, content));
  }

  // ---- import

  const versions = new Map();

  function locate(specifier) {
    specifier = String(specifier);
    if (!/^(\.{1,2})?\//.test(specifier) && !specifier.startsWith('file:')) return specifier;
    const file = specifier.startsWith('file:') ? url.fileURLToPath(specifier) : path.resolve(process.cwd(), specifier);
    const target = url.pathToFileURL(file).href;
    // A changed file is loaded again; the engine itself would keep the first version for good.
    try {
      const { mtimeMs, size } = fs.statSync(file);
      const stamp = `${mtimeMs}-${size}`;
      const known = versions.get(target);
      if (known === undefined) versions.set(target, { stamp, query: '' });
      else if (known.stamp !== stamp) versions.set(target, { stamp, query: `?v=${encodeURIComponent(stamp)}` });
      return target + versions.get(target).query;
    } catch {
      return target;
    }
  }

  const load = (specifier, options) => (options === undefined ? import(locate(specifier)) : import(locate(specifier), options));
  load.names = async (specifier, names, options) => {
    const found = await load(specifier, options);
    for (const name of names) {
      if (!(name in found)) throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${name}'`);
    }
    return found;
  };
  Object.defineProperty(load, 'meta', {
    get: () => ({ url: url.pathToFileURL(process.cwd() + '/').href, dirname: process.cwd(), filename: path.join(process.cwd(), 'cell') }),
  });

  // ---- what a cell sees

  class ExitError extends Error {
    constructor(code) {
      super(`process.exit(${code ?? ''}) was called; the kernel goes on`);
      this.name = 'ExitError';
      this.code = code;
    }
  }

  let taken;
  const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  hidden('tool', tool);
  hidden('display', display);
  hidden('ToolError', ToolError);
  hidden('__haft_import', load);
  hidden('require', createRequire(process.cwd() + '/'));
  // Node's own streams would make the pipes non-blocking, for children too, and write long texts after the cell's end.
  const direct = (fd) => {
    const made = new Writable({ write(chunk, _encoding, done) { writeAll(marks[fd - 1], chunk); done(); } });
    made.fd = fd;
    made._isStdio = true;
    return made;
  };
  const stdio = { stdout: direct(1), stderr: direct(2) };
  for (const name of ['stdout', 'stderr']) Object.defineProperty(process, name, { value: stdio[name], configurable: true, enumerable: true });
  hidden('console', new console.Console({ ...stdio, colorMode: false }));
  const take = Symbol.for('haft.take');
  Object.defineProperty(globalThis, take, { value: (value) => { taken = value; } });
  process.exit = (code) => { throw new ExitError(code); };
  // A true exit waits for the thread that reads the channel, which waits for Haft: for ever.
  process.reallyExit = process.exit;
  process.execArgv = [];
  process.argv = [process.argv[0]];
  // Children are interrupted by the signal; this process is by its channel.
  process.on('SIGINT', () => {});
  process.on('uncaughtException', (error) => writeAll(marks[1], Buffer.from(`Uncaught ${told(error)}\n`)));
  process.on('unhandledRejection', (error) => writeAll(marks[1], Buffer.from(`Uncaught (in promise) ${told(error)}\n`)));

  // ---- cells

  const session = new inspector.Session();
  session.connect();
  const post = (method, params) => new Promise((resolve, reject) => {
    session.post(method, params, (error, result) => (error ? reject(error) : resolve(result)));
  });

  async function valueOf(remote) {
    if (remote.objectId === undefined) {
      if ('value' in remote) return remote.value;
      if (remote.type === 'bigint') return BigInt(remote.unserializableValue.slice(0, -1));
      if (remote.unserializableValue !== undefined) return Number(remote.unserializableValue);
      return undefined;
    }
    taken = undefined;
    await post('Runtime.callFunctionOn', {
      objectId: remote.objectId, functionDeclaration: `function () { 'use strict'; globalThis[Symbol.for('haft.take')](this); }`,
    });
    const value = taken;
    taken = undefined;
    return value;
  }

  // Through the engine's inspector, so that an interrupt ends what a value's own code does here, and not the kernel's.
  let work;
  const perform = Symbol.for('haft.perform');
  Object.defineProperty(globalThis, perform, { value: () => { work(); } });
  async function within(what) {
    let result, problem;
    work = () => {
      try { result = what(); } catch (error) { problem = { error }; }
    };
    const outcome = await post('Runtime.evaluate', { expression: `globalThis[Symbol.for('haft.perform')]()` });
    if (problem) throw problem.error;
    if (outcome.exceptionDetails) throw new Error(outcome.exceptionDetails.text);
    return result;
  }

  /** A value that was thrown, without the frames of the kernel itself. */
  function told(value) {
    const own = /\[eval\]|node:|evalmachine|new Promise \(<anonymous>\)/;
    const lines = [];
    for (const line of inspect(value).split('\n')) {
      if (!/^\s+at /.test(line) || !own.test(line)) lines.push(line);
      else if (line.endsWith(' {')) lines[lines.length - 1] += ' {';
    }
    return lines.join('\n');
  }

  function describe(value, details) {
    if (!(value instanceof Error) && !(value && typeof value === 'object' && typeof value.stack === 'string')) {
      return { name: 'Uncaught', message: cut(inspect(value), 10000), traceback: `Uncaught ${inspect(value)}` };
    }
    const stack = told(value);
    const place = details && value instanceof SyntaxError && !/cell-\d+:\d+/.test(stack)
      ? `\n    at line ${details.lineNumber + 1}, column ${details.columnNumber + 1} of the cell` : '';
    return { name: String(value.name ?? 'Error'), message: cut(String(value.message ?? ''), 10000), traceback: cut(stack + place, 20000) };
  }

  let interrupt = null;

  // Called by the engine in the midst of whatever runs here, when that has not heard of an interrupt. Says whether it is the cell's own code (1)
  // or not (2), and keeps it there until its termination has been asked for.
  const Failure = Error;
  const { captureStackTrace } = Error;
  const clock = process.hrtime.bigint;
  Object.defineProperty(globalThis, Symbol.for('haft.found'), { value: () => {
    const { prepareStackTrace, stackTraceLimit } = Failure;
    const at = {};
    let file = '[eval]';
    try {
      Failure.stackTraceLimit = 2;
      Failure.prepareStackTrace = (_, sites) => { if (sites.length > 1) file = sites[1].getFileName(); };
      captureStackTrace.call(Failure, at, globalThis[Symbol.for('haft.found')]);
      void at.stack;
    } finally {
      Object.assign(Failure, { prepareStackTrace, stackTraceLimit });
    }
    const own = file === '[eval]' || file === 'node:inspector';
    Atomics.store(heard, 1, own ? 2 : 1);
    Atomics.notify(heard, 1);
    // Not by a wait: the engine does not take one within another, and the cell may be in one.
    const until = clock.call(process) + 1000000000n;
    while (!own && Atomics.load(heard, 2) === 0 && clock.call(process) < until);
  } });

  async function run(frame) {
    let status = 'ok', error = null;
    send({ op: 'started', cell: frame.cell });
    let code = frame.code;
    if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
      // An object and not a block, where it can be one.
      try {
        new vm.Script(`(${code}\n)`);
        code = `(${code}\n)`;
      } catch { /* A block. */ }
    }
    const interrupted = new Promise((resolve) => { interrupt = () => resolve('interrupted'); });
    try {
      const evaluated = post('Runtime.evaluate', {
        expression: `${code}\n//# sourceURL=cell-${frame.cell}`, replMode: true, awaitPromise: true, objectGroup: 'cell',
      });
      const outcome = await Promise.race([evaluated, interrupted]);
      if (outcome === 'interrupted') {
        evaluated.catch(() => {});
        status = 'interrupted';
      } else if (outcome.exceptionDetails) {
        const details = outcome.exceptionDetails;
        status = 'error';
        const thrown = details.exception ? await valueOf(details.exception) : new Error(details.text);
        error = await within(() => describe(thrown, details));
      } else {
        const value = await valueOf(outcome.result);
        if (value !== undefined && !frame.quiet) await within(() => show(value, { result: true }));
      }
    } catch (problem) {
      status = /terminated/i.test(String(problem && problem.message)) ? 'interrupted' : 'error';
      if (status === 'error') error = describe(problem instanceof Error ? problem : new Error(problem && problem.message));
    }
    interrupt = null;
    // What the engine says of rejections that nobody handles comes a turn later, and belongs to this cell.
    if (status !== 'interrupted') await new Promise(nextTurn);
    post('Runtime.releaseObjectGroup', { objectGroup: 'cell' }).catch(() => {});
    if (status === 'interrupted') error = { name: 'Interrupted', message: '', traceback: 'Interrupted' };
    mark(`e${frame.cell}`);
    let cwd = '';
    try { cwd = process.cwd(); } catch { /* It was removed. */ }
    send({ op: 'done', cell: frame.cell, status, error, cwd });
  }

  reader.on('message', (frame) => {
    if (frame.op === 'run') {
      run(frame);
    } else if (frame.op === 'reply') {
      replied(frame);
    } else if (frame.op === 'interrupt') {
      Atomics.store(heard, 0, 1);
      Atomics.notify(heard, 0);
      if (interrupt) interrupt();
    }
  });
  // The kernel lives as long as its channel.
  reader.ref();
  send({ op: 'ready', version: process.versions.node, program: process.execPath });
})();
