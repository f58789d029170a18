package harness;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.BuiltinComparator;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.NativeLibraryLoader;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/** Opens databases with Flink's library, as its backend does, and prints the entries of each, or why the library refuses it. */
public final class OpenDatabase {
    public static void main(String[] args) throws Exception {
        NativeLibraryLoader.getInstance().loadLibrary(args[0]);
        Path reversed = Path.of(args[0], "reversed");
        try (Options options = new Options().setCreateIfMissing(true).setComparator(BuiltinComparator.REVERSE_BYTEWISE_COMPARATOR);
                RocksDB database = RocksDB.open(options, reversed.toString())) {
            database.put(new byte[] {1}, new byte[] {2});
        }
        System.out.println(outcome(reversed.toString()));
        for (int i = 1; i < args.length; i++) {
            System.out.println(outcome(args[i]));
        }
    }

    private static String outcome(String folder) {
        try (DBOptions options = new DBOptions();
                ColumnFamilyOptions ofFamilies = new ColumnFamilyOptions().setMergeOperatorName("stringappendtest")) {
            List<ColumnFamilyDescriptor> families = new ArrayList<>();
            for (byte[] name : RocksDB.listColumnFamilies(new Options(), folder)) {
                families.add(new ColumnFamilyDescriptor(name, ofFamilies));
            }
            List<ColumnFamilyHandle> handles = new ArrayList<>();
            try (RocksDB database = RocksDB.open(options, folder, families, handles)) {
                int entries = 0;
                for (ColumnFamilyHandle handle : handles) {
                    try (RocksIterator iterator = database.newIterator(handle)) {
                        for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
                            entries++;
                        }
                        iterator.status();
                    }
                    handle.close();
                }
                return "entries " + entries;
            }
        } catch (RocksDBException e) {
            return "refused " + e.getMessage().replace('\n', ' ');
        }
    }
}
