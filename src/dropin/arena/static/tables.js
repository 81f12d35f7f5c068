// Messages hold lists of similar rows as columns, see `dropin.arena.tables`; the page wants rows.

function rows(value) {
  if (!value?.table) return value;
  const columns = Object.entries(value.table);
  return Array.from({ length: value.of }, (_, k) =>
    Object.fromEntries(
      columns.map(([name, column]) => [name, Array.isArray(column) ? column[k] : column]),
    ),
  );
}

/** Return a frame of a message with rows in the place of tables. */
export function unpackFrame(frame) {
  const scene = Object.fromEntries(
    Object.entries(frame.scene).map(([name, value]) => [name, rows(value)]),
  );
  return { ...frame, agents: rows(frame.agents), scene };
}
