import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.jar.JarFile;
import util.UniqueString;

/**
 * What the static fields of the model checker hold before its first run, to be restored after each.
 *
 * <p>Kept are the fields themselves, the elements of arrays, maps and collections that they hold,
 * the fields of the model checker's own objects there, and of every name that is known: names are
 * compared by their numbers, which come in the order in which they are first met.
 */
final class Statics {
    /** Initialised in this order, which is the order of a first run; then all others. */
    private static final String[] FIRST = {
        "tlc2.TLC", "tla2sany.st.Location", "tla2sany.st.SyntaxTreeConstants",
        "tla2sany.semantic.Generator", "tla2sany.semantic.ASTConstants", "tlc2.tool.ToolGlobals",
    };
    private static final String USED = "(tla2sany|util|tlc2)/.*";
    /** What no search in one process uses, or what opens a port or a window when it is initialised. */
    private static final String UNUSED =
        ".*(/distributed/|/explorer/|/xml/|/mbt/|/dfid/|debug|REPL|TraceExplorer|TLCRunner|Mail).*";

    private final List<Runnable> restorers = new ArrayList<>();
    private final IdentityHashMap<Object, Boolean> seen = new IdentityHashMap<>();

    Statics() throws Exception {
        List<Class<?>> classes = new ArrayList<>();
        for (String name : names()) {
            try {
                classes.add(Class.forName(name));
            } catch (Throwable unusable) {
                // lacks a library that no search needs
            }
        }
        for (Class<?> type : classes) {
            for (Field field : type.getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                    keep(field, null);
                    keepContents(field.get(null), true);
                }
            }
        }
        Field table = UniqueString.internTbl.getClass().getDeclaredField("table");
        table.setAccessible(true);
        for (Object name : (Object[]) table.get(UniqueString.internTbl)) {
            keepContents(name, false);
        }
        keepContents(table.get(UniqueString.internTbl), false);
        seen.clear();
    }

    void restore() {
        for (Runnable restorer : restorers) {
            restorer.run();
        }
    }

    private static Collection<String> names() throws Exception {
        Collection<String> names = new java.util.LinkedHashSet<>(List.of(FIRST));
        String path = System.getProperty("java.class.path").split(java.io.File.pathSeparator)[0];
        try (JarFile jar = new JarFile(path)) {
            TreeSet<String> found = new TreeSet<>();
            jar.stream().map(entry -> entry.getName())
                .filter(name -> name.endsWith(".class") && name.matches(USED))
                .filter(name -> !name.matches(UNUSED))
                .forEach(name -> found.add(name.replace('/', '.').replace(".class", "")));
            names.addAll(found);
        }
        return names;
    }

    private void keep(Field field, Object owner) throws IllegalAccessException {
        field.setAccessible(true);
        boolean fixed = Modifier.isFinal(field.getModifiers());
        if (fixed) {
            return;
        }
        Object value = field.get(owner);
        restorers.add(() -> {
            try {
                field.set(owner, value);
            } catch (IllegalAccessException impossible) {
                throw new IllegalStateException(impossible);
            }
        });
    }

    @SuppressWarnings("unchecked")
    private void keepContents(Object value, boolean deeper) throws IllegalAccessException {
        if (value == null || seen.put(value, true) != null) {
            return;
        }
        Class<?> type = value.getClass();
        if (type.isArray()) {
            int length = Array.getLength(value);
            Object copy = Array.newInstance(type.getComponentType(), length);
            System.arraycopy(value, 0, copy, 0, length);
            restorers.add(() -> System.arraycopy(copy, 0, value, 0, length));
        } else if (value instanceof AtomicInteger) {
            int number = ((AtomicInteger) value).get();
            restorers.add(() -> ((AtomicInteger) value).set(number));
        } else if (value instanceof AtomicLong) {
            long number = ((AtomicLong) value).get();
            restorers.add(() -> ((AtomicLong) value).set(number));
        } else if (value instanceof java.util.Hashtable || value instanceof java.util.HashMap) {
            Map<Object, Object> map = (Map<Object, Object>) value;
            List<Map.Entry<Object, Object>> entries = new ArrayList<>();
            map.forEach((key, item) -> entries.add(Map.entry(key, item)));
            restorers.add(() -> {
                map.clear();
                entries.forEach(entry -> map.put(entry.getKey(), entry.getValue()));
            });
        } else if (value instanceof java.util.HashSet || value instanceof ArrayList) {
            Collection<Object> all = (Collection<Object>) value;
            List<Object> items = new ArrayList<>(all);
            restorers.add(() -> {
                all.clear();
                all.addAll(items);
            });
        } else if (type.getName().matches("(tla2sany|util|tlc2)\\..*")) {
            for (Class<?> part = type; part != null && part != Object.class; part = part.getSuperclass()) {
                if (!part.getName().matches("(tla2sany|util|tlc2)\\..*")) {
                    break;
                }
                for (Field field : part.getDeclaredFields()) {
                    if (!Modifier.isStatic(field.getModifiers())) {
                        keep(field, value);
                        if (deeper) {
                            keepContents(field.get(value), false);
                        }
                    }
                }
            }
        }
    }
}
